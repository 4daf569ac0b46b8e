// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/testing/fake_dma_bufs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/dma-buf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

namespace hearth::vulkan {
namespace {

// Functions of Vulkan and of the kernel know nothing of tests.
FakeDmaBufs* served = nullptr;

ino_t numberOf(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

// A structure of a chain, or null.
template <typename Structure>
const Structure* find(const void* chain, VkStructureType type) {
  const auto* next = static_cast<const VkBaseInStructure*>(chain);
  while (next != nullptr && next->sType != type) next = next->pNext;
  return reinterpret_cast<const Structure*>(next);
}

}  // namespace

FakeDmaBufs::FakeDmaBufs(std::shared_ptr<Gpu> gpu)
    : gpu_(std::move(gpu)), sound_(gpu_->functions()), kernel_(gpu_->dmaBufCalls()) {
  served = this;
  VolkDeviceTable& functions = gpu_->functionsForTest();
  functions.vkCreateBuffer = create;
  functions.vkGetMemoryFdPropertiesKHR = ask;
  functions.vkAllocateMemory = allocate;
  functions.vkBindBufferMemory = bind;
  functions.vkCmdPipelineBarrier = passBarrier;
  functions.vkQueueSubmit = submit;
  gpu_->dmaBufCallsForTest() = {isDmaBuf, sync};
}

FakeDmaBufs::~FakeDmaBufs() {
  gpu_->functionsForTest() = sound_;
  gpu_->dmaBufCallsForTest() = kernel_;
  served = nullptr;
}

base::Descriptor FakeDmaBufs::make(size_t bytes) {
  base::Descriptor memory(::memfd_create("dma-buf", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(memory.get(), static_cast<off_t>(bytes)), 0);
  numbers_.insert(numberOf(memory.get()));
  return memory;
}

int FakeDmaBufs::descriptors() const {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    if (isDmaBuf(std::stoi(entry.path().filename()))) ++count;
  return count;
}

std::vector<std::string> FakeDmaBufs::takeCalls() {
  const std::lock_guard lock(mutex_);
  return std::exchange(calls_, {});
}

void FakeDmaBufs::note(std::string call) {
  const std::lock_guard lock(mutex_);
  calls_.push_back(std::move(call));
}

bool FakeDmaBufs::isDmaBuf(int fd) {
  return fd >= 0 && served->numbers_.contains(numberOf(fd));
}

Status FakeDmaBufs::sync(int fd, uint64_t flags) {
  EXPECT_TRUE(isDmaBuf(fd));
  EXPECT_EQ(flags & DMA_BUF_SYNC_RW, DMA_BUF_SYNC_RW);
  served->note((flags & DMA_BUF_SYNC_END) != 0 ? "end CPU access" : "start CPU access");
  return served->syncing;
}

VkResult FakeDmaBufs::create(VkDevice device, const VkBufferCreateInfo* info,
                             const VkAllocationCallbacks* callbacks, VkBuffer* buffer) {
  const auto* const external = find<VkExternalMemoryBufferCreateInfo>(
      info->pNext, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  if (external != nullptr &&
      external->handleTypes == VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT) {
    served->note("create buffer");
    if (served->making != VK_SUCCESS) return served->making;
  }
  return served->sound_.vkCreateBuffer(device, info, callbacks, buffer);
}

VkResult FakeDmaBufs::ask(VkDevice device, VkExternalMemoryHandleTypeFlagBits kind, int fd,
                          VkMemoryFdPropertiesKHR* properties) {
  EXPECT_EQ(kind, VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT);
  EXPECT_TRUE(isDmaBuf(fd));
  served->note("get properties");
  if (served->asking != VK_SUCCESS) return served->asking;
  const VkResult result = served->sound_.vkGetMemoryFdPropertiesKHR(device, kind, fd, properties);
  EXPECT_EQ(result, VK_SUCCESS);
  properties->memoryTypeBits &= served->memoryTypes;
  return result;
}

VkResult FakeDmaBufs::allocate(VkDevice device, const VkMemoryAllocateInfo* info,
                               const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
  if (find<VkImportMemoryHostPointerInfoEXT>(
          info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT) != nullptr)
    served->note("import pages");
  const auto* const import =
      find<VkImportMemoryFdInfoKHR>(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
  if (import == nullptr) return served->sound_.vkAllocateMemory(device, info, callbacks, memory);
  EXPECT_EQ(import->handleType, VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT);
  EXPECT_TRUE(isDmaBuf(import->fd));
  served->note("import descriptor");
  served->importedBytes = info->allocationSize;
  served->wasDedicated =
      find<VkMemoryDedicatedAllocateInfo>(
          info->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO) != nullptr;
  if (served->taking != VK_SUCCESS) return served->taking;
  VkImportMemoryFdInfoKHR shown = *import;
  VkMemoryAllocateInfo wanted = *info;
  if (served->behindAll >= 0) {
    EXPECT_EQ(info->pNext, import);
    shown.fd = ::fcntl(served->behindAll, F_DUPFD_CLOEXEC, 0);
    wanted.pNext = &shown;
  }
  const VkResult result = served->sound_.vkAllocateMemory(device, &wanted, callbacks, memory);
  EXPECT_EQ(result, VK_SUCCESS);
  if (shown.fd != import->fd) ::close(import->fd);
  served->imported_ = *memory;
  return result;
}

VkResult FakeDmaBufs::bind(VkDevice device, VkBuffer buffer, VkDeviceMemory memory,
                           VkDeviceSize offset) {
  if (memory == served->imported_ && memory != VK_NULL_HANDLE) {
    served->note("bind");
    if (served->binding != VK_SUCCESS) return served->binding;
  }
  return served->sound_.vkBindBufferMemory(device, buffer, memory, offset);
}

void FakeDmaBufs::passBarrier(VkCommandBuffer commands, VkPipelineStageFlags before,
                              VkPipelineStageFlags after, VkDependencyFlags flags,
                              uint32_t memoryCount, const VkMemoryBarrier* memories,
                              uint32_t bufferCount, const VkBufferMemoryBarrier* buffers,
                              uint32_t imageCount, const VkImageMemoryBarrier* images) {
  const uint32_t foreign = served->gpu_->facts().foreignFamily;
  for (uint32_t i = 0; i < bufferCount; ++i) {
    const bool isAcquired = buffers[i].srcQueueFamilyIndex == foreign;
    EXPECT_EQ(isAcquired ? buffers[i].dstQueueFamilyIndex : buffers[i].srcQueueFamilyIndex,
              served->gpu_->queueFamily());
    EXPECT_TRUE(isAcquired || buffers[i].dstQueueFamilyIndex == foreign);
    served->note(isAcquired ? "record acquire" : "record release");
  }
  served->sound_.vkCmdPipelineBarrier(commands, before, after, flags, memoryCount, memories,
                                      bufferCount, buffers, imageCount, images);
}

VkResult FakeDmaBufs::submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                             VkFence fence) {
  served->note("submit");
  return served->sound_.vkQueueSubmit(queue, count, infos, fence);
}

}  // namespace hearth::vulkan
