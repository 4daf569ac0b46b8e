// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/context/buffer.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/descriptor.h"
#include "memory/budget.h"
#include "memory/mapping.h"

namespace hearth::vulkan {
namespace {

constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_DST_BIT;
constexpr VkMemoryPropertyFlags kVisible =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

}  // namespace

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

Result<std::unique_ptr<Buffer>> Buffer::ofHost(std::shared_ptr<Gpu> gpu, uint8_t* data,
                                               uint64_t bytes, std::shared_ptr<const void> owner) {
  std::unique_ptr<Buffer> buffer(new Buffer(std::move(gpu)));
  buffer->owner_ = std::move(owner);
  HEARTH_TRY(buffer->import(data, bytes));
  return buffer;
}

Result<std::unique_ptr<Buffer>> Buffer::ofDmaBuf(std::shared_ptr<Gpu> gpu, int fd, uint64_t bytes) {
  std::unique_ptr<Buffer> buffer(new Buffer(std::move(gpu)));
  HEARTH_TRY(buffer->importDmaBuf(fd, bytes));
  return buffer;
}

Status Buffer::createFor(VkExternalMemoryHandleTypeFlagBits kind, uint64_t bytes,
                         VkMemoryRequirements* needs) {
  bytes_ = bytes;
  const VolkDeviceTable& vk = gpu_->functions();
  const VkExternalMemoryBufferCreateInfo external{
      VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, nullptr,
      static_cast<VkExternalMemoryHandleTypeFlags>(kind)};
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external};
  info.size = bytes;
  info.usage = kUsage;
  HEARTH_TRY(
      checkResult(vk.vkCreateBuffer(gpu_->device(), &info, nullptr, &buffer_), "vkCreateBuffer"));
  vk.vkGetBufferMemoryRequirements(gpu_->device(), buffer_, needs);
  return {};
}

Status Buffer::importDmaBuf(int fd, uint64_t bytes) {
  constexpr VkExternalMemoryHandleTypeFlagBits kDmaBuf =
      VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
  const VolkDeviceTable& vk = gpu_->functions();
  VkMemoryRequirements needs;
  HEARTH_TRY(createFor(kDmaBuf, bytes, &needs));
  // No more than that: some drivers want room behind what is imported.
  const uint64_t most = std::min(memory::mappableSize(fd).value_or(0), gpu_->facts().maxAllocation);
  if (needs.size > most)
    return fail(ErrorCode::kUnsupported,
                "A buffer over {} bytes of a dma-buf needs {}, of which {} can be had.", bytes,
                needs.size, most);
  VkMemoryFdPropertiesKHR properties{VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR};
  HEARTH_TRY(checkResult(vk.vkGetMemoryFdPropertiesKHR(gpu_->device(), kDmaBuf, fd, &properties),
                         "vkGetMemoryFdPropertiesKHR"));
  base::Descriptor own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own.valid())
    return std::unexpected(base::errnoError(errno, "Duplicating the descriptor of a dma-buf"));
  VkImportMemoryFdInfoKHR import{VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR};
  import.handleType = kDmaBuf;
  import.fd = own.get();
  VkMemoryDedicatedAllocateInfo dedicated{VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
  dedicated.buffer = buffer_;
  if (gpu_->facts().isDedicatedToDmaBuf) import.pNext = &dedicated;
  VkMemoryAllocateInfo memory{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &import};
  memory.allocationSize = needs.size;
  HEARTH_ASSIGN(memory.memoryTypeIndex,
                gpu_->memoryType(needs.memoryTypeBits & properties.memoryTypeBits, 0, 0));
  HEARTH_TRY(checkResult(vk.vkAllocateMemory(gpu_->device(), &memory, nullptr, &memory_),
                         "vkAllocateMemory"));
  // It is Vulkan's now.
  own.release();
  return checkResult(vk.vkBindBufferMemory(gpu_->device(), buffer_, memory_, 0),
                     "vkBindBufferMemory");
}

Status Buffer::import(uint8_t* data, uint64_t bytes) {
  constexpr VkExternalMemoryHandleTypeFlagBits kHost =
      VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  const VolkDeviceTable& vk = gpu_->functions();
  VkMemoryRequirements needs;
  HEARTH_TRY(createFor(kHost, bytes, &needs));
  if (needs.size > bytes)
    return fail(ErrorCode::kUnsupported, "A buffer over {} bytes of the host needs {}.", bytes,
                needs.size);
  VkMemoryHostPointerPropertiesEXT pointer{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  HEARTH_TRY(
      checkResult(vk.vkGetMemoryHostPointerPropertiesEXT(gpu_->device(), kHost, data, &pointer),
                  "vkGetMemoryHostPointerPropertiesEXT"));
  const VkImportMemoryHostPointerInfoEXT import{
      VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, nullptr, kHost, data};
  VkMemoryAllocateInfo memory{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &import};
  memory.allocationSize = bytes;
  HEARTH_ASSIGN(memory.memoryTypeIndex,
                gpu_->memoryType(needs.memoryTypeBits & pointer.memoryTypeBits, kVisible,
                                 VK_MEMORY_PROPERTY_HOST_CACHED_BIT));
  HEARTH_TRY(checkResult(vk.vkAllocateMemory(gpu_->device(), &memory, nullptr, &memory_),
                         "vkAllocateMemory"));
  return checkResult(vk.vkBindBufferMemory(gpu_->device(), buffer_, memory_, 0),
                     "vkBindBufferMemory");
}

Status Buffer::allocate(uint64_t bytes, Kind kind) {
  HEARTH_ASSIGN(room_, memory::reserveRoom(bytes));
  bytes_ = bytes;
  const VolkDeviceTable& vk = gpu_->functions();
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = kUsage;
  HEARTH_TRY(
      checkResult(vk.vkCreateBuffer(gpu_->device(), &info, nullptr, &buffer_), "vkCreateBuffer"));
  VkMemoryRequirements needs;
  vk.vkGetBufferMemoryRequirements(gpu_->device(), buffer_, &needs);
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
  if (gpu_->isLost()) {
    // The GPU may still be writing there.
    if (owner_ != nullptr) new std::shared_ptr<const void>(std::move(owner_));
    return;
  }
  const VolkDeviceTable& vk = gpu_->functions();
  vk.vkDestroyBuffer(gpu_->device(), buffer_, nullptr);
  vk.vkFreeMemory(gpu_->device(), memory_, nullptr);
}

}  // namespace hearth::vulkan
