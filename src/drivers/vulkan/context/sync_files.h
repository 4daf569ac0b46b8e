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

namespace hearth::vulkan {

// Semaphores that sync files of the kernel wait in and come out of: how the queue of a GPU waits
// for what other devices do, and tells them when it is done. For a GPU with GpuFacts::hasSyncFiles.
// Not thread-safe; used by one submission at a time, after whose end alone it is destroyed.
class SyncFiles {
 public:
  explicit SyncFiles(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  ~SyncFiles();
  SyncFiles(const SyncFiles&) = delete;
  SyncFiles& operator=(const SyncFiles&) = delete;

  // Makes semaphores of the files, for the next submission to wait for. kUnsupported for a
  // descriptor that is no sync file; errors of the calls that make semaphores.
  Status take(std::span<const base::Descriptor> files);
  std::span<const VkSemaphore> waits() const { return {waits_.data(), taken_}; }

  // A semaphore for the submission to signal.
  Result<VkSemaphore> signal();
  // A descriptor that poll() reports readable when the submission has signalled it, which was made
  // before. Errors of vkGetSemaphoreFdKHR.
  Result<base::Descriptor> give();

 private:
  Result<VkSemaphore> create(bool isGiven);

  const std::shared_ptr<Gpu> gpu_;
  std::vector<VkSemaphore> waits_;
  size_t taken_ = 0;  // of them, by the next submission
  VkSemaphore signal_ = VK_NULL_HANDLE;
};

}  // namespace hearth::vulkan
