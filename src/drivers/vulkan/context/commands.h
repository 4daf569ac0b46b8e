// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <volk.h>

#include <memory>
#include <utility>

#include "base/result.h"
#include "drivers/vulkan/context/gpu.h"

namespace hearth::vulkan {

// Commands that are recorded once and run any number of times, one run at a time. Not thread-safe.
// What they use must outlive them.
class Commands {
 public:
  static Result<std::unique_ptr<Commands>> create(std::shared_ptr<Gpu> gpu);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  // Begins anew; what was recorded is dropped.
  Status begin();
  Status end();
  VkCommandBuffer handle() const { return buffer_; }

  // Makes what was written so far visible to what follows: shaders, copies and the host.
  void barrier();

  // Hands them to the queue and waits until they have run. Errors as Gpu::submit() and wait().
  Status run();

 private:
  explicit Commands(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  Status allocate();

  std::shared_ptr<Gpu> gpu_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer buffer_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
};

}  // namespace hearth::vulkan
