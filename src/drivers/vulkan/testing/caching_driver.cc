// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/testing/caching_driver.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hearth::vulkan {
namespace {

constinit CachingDriver* current = nullptr;

}  // namespace

CachingDriver::CachingDriver(std::shared_ptr<Gpu> gpu)
    : gpu_(std::move(gpu)),
      create_(std::exchange(gpu_->functionsForTest().vkCreatePipelineCache, create)),
      get_(std::exchange(gpu_->functionsForTest().vkGetPipelineCacheData, get)) {
  current = this;
  VkPipelineCacheHeaderVersionOne head{};
  head.headerSize = sizeof head;
  head.headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE;
  head.vendorID = gpu_->facts().vendorId;
  head.deviceID = gpu_->facts().deviceId;
  std::ranges::copy(gpu_->facts().pipelineCacheUuid, head.pipelineCacheUUID);
  data.resize(sizeof head + 1000, 0x5a);
  std::memcpy(data.data(), &head, sizeof head);
}

CachingDriver::~CachingDriver() {
  gpu_->functionsForTest().vkCreatePipelineCache = create_;
  gpu_->functionsForTest().vkGetPipelineCacheData = get_;
  current = nullptr;
}

VkResult CachingDriver::create(VkDevice device, const VkPipelineCacheCreateInfo* info,
                               const VkAllocationCallbacks* allocator, VkPipelineCache* cache) {
  const auto* bytes = static_cast<const uint8_t*>(info->pInitialData);
  if (info->initialDataSize != 0) {
    current->given.emplace_back(bytes, bytes + info->initialDataSize);
    if (current->refuses) return VK_ERROR_UNKNOWN;
  }
  VkPipelineCacheCreateInfo empty = *info;
  empty.initialDataSize = 0;
  empty.pInitialData = nullptr;
  return current->create_(device, &empty, allocator, cache);
}

VkResult CachingDriver::get(VkDevice /*device*/, VkPipelineCache /*cache*/, size_t* size,
                            void* data) {
  if (data != nullptr) std::memcpy(data, current->data.data(), *size);
  *size = current->data.size();
  return VK_SUCCESS;
}

}  // namespace hearth::vulkan
