// SPDX-License-Identifier: Apache-2.0
// Memory domains: tensors that a client has in the memory of the GPU.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/vulkan/context/buffer.h"
#include "drivers/vulkan/context/gpu.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::vulkan {

// Whether two shapes may be the same; 0 is an unknown dimension, an empty list an unknown rank.
bool mayBeSame(const graph::Dimensions& a, const graph::Dimensions& b);

// One tensor, zeros at first. Whoever uses it keeps it alive. Thread-safe; of executions and copies
// that use it at the same time, some may see what others have written in part.
class DeviceTensor {
 public:
  // Errors as Buffer::create() and Commands::run().
  static Result<std::shared_ptr<DeviceTensor>> create(std::shared_ptr<Gpu> gpu, uint64_t bytes,
                                                      uint32_t token, graph::Dimensions dimensions);

  // Copies the whole tensor from memory of as many bytes, or to it.
  Status write(const uint8_t* from);
  Status read(uint8_t* to);

  VkBuffer handle() const { return buffer_->handle(); }
  uint64_t bytes() const { return bytes_; }
  uint32_t token() const { return token_; }
  // As the client gave them: 0 for those that its models know.
  const graph::Dimensions& dimensions() const { return dimensions_; }

 private:
  DeviceTensor(std::shared_ptr<Gpu> gpu, uint64_t bytes, uint32_t token,
               graph::Dimensions dimensions)
      : gpu_(std::move(gpu)), bytes_(bytes), token_(token), dimensions_(std::move(dimensions)) {}

  const std::shared_ptr<Gpu> gpu_;
  const uint64_t bytes_;
  const uint32_t token_;
  const graph::Dimensions dimensions_;
  std::unique_ptr<Buffer> buffer_;
};

// The tensors of one device, by their tokens. Thread-safe.
class DeviceTensors : public std::enable_shared_from_this<DeviceTensors> {
 public:
  // A tensor of `bytes` bytes and these dimensions, until the result is destroyed. Errors as
  // DeviceTensor::create().
  Result<std::unique_ptr<hal::Buffer>> allocate(std::shared_ptr<Gpu> gpu, uint64_t bytes,
                                                graph::Dimensions dimensions);

  // Null for a token of no tensor. No two tensors have had the same one.
  std::shared_ptr<DeviceTensor> find(uint32_t token);
  void remove(uint32_t token);

 private:
  base::Mutex mutex_;
  uint32_t lastToken_ = 0;
  std::map<uint32_t, std::shared_ptr<DeviceTensor>> tensors_;
};

}  // namespace hearth::vulkan
