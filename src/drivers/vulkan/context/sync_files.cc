// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/context/sync_files.h"

#include <sys/eventfd.h>

#include <cerrno>

namespace hearth::vulkan {

SyncFiles::~SyncFiles() {
  if (gpu_->isLost()) return;
  waits_.push_back(signal_);
  for (const VkSemaphore semaphore : waits_)
    gpu_->functions().vkDestroySemaphore(gpu_->device(), semaphore, nullptr);
}

Result<VkSemaphore> SyncFiles::create(bool isGiven) {
  VkExportSemaphoreCreateInfo given{VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO};
  given.handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                   isGiven ? &given : nullptr, 0};
  VkSemaphore semaphore = VK_NULL_HANDLE;
  HEARTH_TRY(
      checkResult(gpu_->functions().vkCreateSemaphore(gpu_->device(), &info, nullptr, &semaphore),
                  "vkCreateSemaphore"));
  return semaphore;
}

Status SyncFiles::take(std::span<const base::Descriptor> files) {
  taken_ = 0;
  for (const base::Descriptor& file : files) {
    if (taken_ == waits_.size()) {
      HEARTH_ASSIGN(const VkSemaphore made, create(false));
      waits_.push_back(made);
    }
    // A payload that an earlier submission did not wait for is replaced.
    HEARTH_ASSIGN(base::Descriptor own, file.duplicate());
    VkImportSemaphoreFdInfoKHR info{VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR};
    info.semaphore = waits_[taken_];
    info.flags = VK_SEMAPHORE_IMPORT_TEMPORARY_BIT;
    info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
    info.fd = own.get();
    const VkResult result = gpu_->functions().vkImportSemaphoreFdKHR(gpu_->device(), &info);
    if (result == VK_ERROR_INVALID_EXTERNAL_HANDLE)
      return fail(ErrorCode::kUnsupported, "The GPU cannot wait for the descriptor {}.",
                  file.get());
    HEARTH_TRY(checkResult(result, "vkImportSemaphoreFdKHR"));
    // It is Vulkan's now.
    own.release();
    ++taken_;
  }
  return {};
}

Result<VkSemaphore> SyncFiles::signal() {
  if (signal_ == VK_NULL_HANDLE) {
    HEARTH_ASSIGN(signal_, create(true));
  }
  return signal_;
}

Result<base::Descriptor> SyncFiles::give() {
  VkSemaphoreGetFdInfoKHR info{VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR};
  info.semaphore = signal_;
  info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
  int fd = -1;
  HEARTH_TRY(checkResult(gpu_->functions().vkGetSemaphoreFdKHR(gpu_->device(), &info, &fd),
                         "vkGetSemaphoreFdKHR"));
  // -1 is a file of what is done already.
  if (fd < 0) fd = ::eventfd(1, EFD_CLOEXEC);
  if (fd < 0) return std::unexpected(base::errnoError(errno, "Making a fence"));
  return base::Descriptor(fd);
}

}  // namespace hearth::vulkan
