// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <volk.h>

#include <memory>
#include <span>
#include <utility>

#include "base/descriptor.h"
#include "base/result.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/context/sync_files.h"

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

  // Hands them to the queue, which runs them after these sync files; returns a descriptor that
  // poll() reports readable when they have run. A success is followed by finish(). kUnsupported,
  // before anything is handed over, where the GPU cannot wait for a file; else errors as those of
  // Gpu::submit() and SyncFiles.
  Result<base::Descriptor> start(std::span<const base::Descriptor> files);
  // Waits until they have run. Errors as Gpu::wait().
  Status finish();

 private:
  explicit Commands(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  Status allocate();

  std::shared_ptr<Gpu> gpu_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer buffer_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  std::unique_ptr<SyncFiles> syncFiles_;  // null before start()
};

}  // namespace hearth::vulkan
