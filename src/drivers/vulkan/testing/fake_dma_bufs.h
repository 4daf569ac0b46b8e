// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <volk.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "drivers/vulkan/context/gpu.h"

namespace hearth::vulkan {

// Shared memory in place of a dma-buf, which Vulkan's implementation on the CPU imports as one, and
// functions in place of the kernel's and of Vulkan's that tell what is done with it, and refuse it
// where a test wants that. One at a time, and while it is there, the GPU is.
class FakeDmaBufs {
 public:
  explicit FakeDmaBufs(std::shared_ptr<Gpu> gpu);
  ~FakeDmaBufs();
  FakeDmaBufs(const FakeDmaBufs&) = delete;
  FakeDmaBufs& operator=(const FakeDmaBufs&) = delete;

  // Shared memory of this size, which is a dma-buf from now on.
  base::Descriptor make(size_t bytes);
  // Descriptors of dma-bufs that this process has.
  int descriptors() const;
  // What was done since the last call, in its order.
  std::vector<std::string> takeCalls();

  VkResult making = VK_SUCCESS;  // a buffer
  VkResult asking = VK_SUCCESS;  // for the types of memory
  VkResult taking = VK_SUCCESS;  // the descriptor
  VkResult binding = VK_SUCCESS;
  uint32_t memoryTypes = UINT32_MAX;
  Status syncing;
  int behindAll = -1;          // if there is one, the memory that all dma-bufs show
  uint64_t importedBytes = 0;  // the last time
  bool wasDedicated = false;

 private:
  static bool isDmaBuf(int fd);
  static Status sync(int fd, uint64_t flags);
  static VkResult VKAPI_CALL create(VkDevice device, const VkBufferCreateInfo* info,
                                    const VkAllocationCallbacks* callbacks, VkBuffer* buffer);
  static VkResult VKAPI_CALL ask(VkDevice device, VkExternalMemoryHandleTypeFlagBits kind, int fd,
                                 VkMemoryFdPropertiesKHR* properties);
  static VkResult VKAPI_CALL allocate(VkDevice device, const VkMemoryAllocateInfo* info,
                                      const VkAllocationCallbacks* callbacks,
                                      VkDeviceMemory* memory);
  static VkResult VKAPI_CALL bind(VkDevice device, VkBuffer buffer, VkDeviceMemory memory,
                                  VkDeviceSize offset);
  static void VKAPI_CALL passBarrier(VkCommandBuffer commands, VkPipelineStageFlags before,
                                     VkPipelineStageFlags after, VkDependencyFlags flags,
                                     uint32_t memoryCount, const VkMemoryBarrier* memories,
                                     uint32_t bufferCount, const VkBufferMemoryBarrier* buffers,
                                     uint32_t imageCount, const VkImageMemoryBarrier* images);
  static VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                    VkFence fence);
  void note(std::string call);

  const std::shared_ptr<Gpu> gpu_;
  const VolkDeviceTable sound_;
  const DmaBufCalls kernel_;
  std::set<ino_t> numbers_;  // of the memories
  VkDeviceMemory imported_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  std::vector<std::string> calls_;
};

}  // namespace hearth::vulkan
