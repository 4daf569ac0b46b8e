// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/context/buffer.h"

#include <utility>

#include "memory/budget.h"

namespace hearth::vulkan {

Result<std::unique_ptr<Buffer>> Buffer::create(std::shared_ptr<Gpu> gpu, uint64_t bytes,
                                               Kind kind) {
  if (bytes > gpu->facts().maxAllocation)
    return fail(ErrorCode::kResourceExhaustedPersistent,
                "{} bytes are needed in one piece, the GPU {} gives at most {}.", bytes,
                gpu->facts().name, gpu->facts().maxAllocation);
  std::unique_ptr<Buffer> buffer(new Buffer(std::move(gpu)));
  HEARTH_TRY(buffer->allocate(bytes, kind));
  return buffer;
}

Status Buffer::allocate(uint64_t bytes, Kind kind) {
  HEARTH_ASSIGN(room_, memory::reserveRoom(bytes));
  bytes_ = bytes;
  const VolkDeviceTable& vk = gpu_->functions();
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  HEARTH_TRY(
      checkResult(vk.vkCreateBuffer(gpu_->device(), &info, nullptr, &buffer_), "vkCreateBuffer"));
  VkMemoryRequirements needs;
  vk.vkGetBufferMemoryRequirements(gpu_->device(), buffer_, &needs);
  constexpr VkMemoryPropertyFlags kVisible =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const bool isOfDevice = kind == Kind::kDevice;
  const VkMemoryPropertyFlags preferred = isOfDevice ? VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
                                          : kind == Kind::kDownload
                                              ? VK_MEMORY_PROPERTY_HOST_CACHED_BIT
                                              : 0;
  VkMemoryAllocateInfo memory{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  memory.allocationSize = needs.size;
  HEARTH_ASSIGN(memory.memoryTypeIndex,
                gpu_->memoryType(needs.memoryTypeBits, isOfDevice ? 0 : kVisible, preferred));
  HEARTH_TRY(checkResult(vk.vkAllocateMemory(gpu_->device(), &memory, nullptr, &memory_),
                         "vkAllocateMemory"));
  HEARTH_TRY(checkResult(vk.vkBindBufferMemory(gpu_->device(), buffer_, memory_, 0),
                         "vkBindBufferMemory"));
  if (isOfDevice) return {};
  void* data = nullptr;
  HEARTH_TRY(checkResult(vk.vkMapMemory(gpu_->device(), memory_, 0, VK_WHOLE_SIZE, 0, &data),
                         "vkMapMemory"));
  data_ = static_cast<uint8_t*>(data);
  return {};
}

Buffer::~Buffer() {
  if (gpu_->isLost()) return;
  const VolkDeviceTable& vk = gpu_->functions();
  vk.vkDestroyBuffer(gpu_->device(), buffer_, nullptr);
  vk.vkFreeMemory(gpu_->device(), memory_, nullptr);
}

}  // namespace hearth::vulkan
