// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <volk.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "drivers/vulkan/context/gpu.h"

namespace hearth::vulkan {

// A buffer with memory of its own, for shaders and copies. Not thread-safe. It must not be
// destroyed while commands use it. Of a lost device, which may still be using it, nothing is freed.
class Buffer {
 public:
  enum class Kind {
    kDevice,    // fast for the GPU; the host may not see it
    kUpload,    // the host writes, the GPU reads
    kDownload,  // the GPU writes, the host reads
  };

  // `bytes` is at least 1. Errors: kResourceExhaustedTransient without room, also in the budget of
  // the calling thread (memory/budget.h); kResourceExhaustedPersistent above the device's limit.
  static Result<std::unique_ptr<Buffer>> create(std::shared_ptr<Gpu> gpu, uint64_t bytes,
                                                Kind kind);
  // A buffer over memory of the host, which `owner` keeps mapped and writable. Address and size are
  // multiples of GpuFacts::hostAlignment, which is not 0. kUnsupported, or an error of Vulkan's,
  // where the GPU does not take it.
  static Result<std::unique_ptr<Buffer>> ofHost(std::shared_ptr<Gpu> gpu, uint8_t* data,
                                                uint64_t bytes, std::shared_ptr<const void> owner);
  // A buffer over the first `bytes` of a dma-buf, by a descriptor of its own. Errors as ofHost().
  static Result<std::unique_ptr<Buffer>> ofDmaBuf(std::shared_ptr<Gpu> gpu, int fd, uint64_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  VkBuffer handle() const { return buffer_; }
  uint64_t bytes() const { return bytes_; }
  // Where the host sees it; null for kDevice.
  uint8_t* data() const { return data_; }

 private:
  explicit Buffer(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  Status allocate(uint64_t bytes, Kind kind);
  // Makes the buffer, for memory of this kind from elsewhere, and says what it needs.
  Status createFor(VkExternalMemoryHandleTypeFlagBits kind, uint64_t bytes,
                   VkMemoryRequirements* needs);
  Status import(uint8_t* data, uint64_t bytes);
  Status importDmaBuf(int fd, uint64_t bytes);

  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<void> room_;
  std::shared_ptr<const void> owner_;  // of the host's memory; null for memory of its own
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  uint64_t bytes_ = 0;
  uint8_t* data_ = nullptr;
};

}  // namespace hearth::vulkan
