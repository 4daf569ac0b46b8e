// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <volk.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

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
  // What is recorded now.
  VkCommandBuffer handle() const { return parts_[used_ - 1].buffer; }

  // What follows goes to the queue in a submission of its own, behind what was recorded before:
  // drivers of GPUs end a submission that takes seconds.
  Status split();

  // Makes what was written so far visible to what follows: shaders, copies and the host.
  void barrier();

  // Takes a buffer over a dma-buf from the devices that share it (GpuFacts::foreignFamily), before
  // it is used, and gives it back to them.
  void acquire(VkBuffer buffer);
  void release(VkBuffer buffer);

  // Hands them to the queue and waits until they have run. Errors as Gpu::submit() and wait();
  // after one of submit() nothing of them runs any more.
  Status run();

  // Hands them to the queue, which runs them after these sync files; returns a descriptor that
  // poll() reports readable when they have run. A success is followed by finish(). kUnsupported,
  // before anything is handed over, where the GPU cannot wait for a file and for commands that are
  // split; else errors as those of Gpu::submit() and SyncFiles.
  Result<base::Descriptor> start(std::span<const base::Descriptor> files);
  // Waits until they have run. Errors as Gpu::wait().
  Status finish();

 private:
  explicit Commands(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  Status allocate();

  // Of one submission.
  struct Part {
    VkCommandBuffer buffer = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
  };
  Status addPart();
  Status beginPart();
  Status submit(const Part& part, std::span<const VkSemaphore> waits = {},
                VkSemaphore signal = VK_NULL_HANDLE);

  std::shared_ptr<Gpu> gpu_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<Part> parts_;
  size_t used_ = 1;                       // of the parts, by what is recorded
  std::unique_ptr<SyncFiles> syncFiles_;  // null before start()
};

}  // namespace hearth::vulkan
