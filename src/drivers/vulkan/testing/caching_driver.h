// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <volk.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/vulkan/context/gpu.h"

namespace hearth::vulkan {

// Functions in place of those of Vulkan's pipeline caches, of which Mesa's implementation on the
// CPU keeps nothing. One at a time, and while it is there, the GPU is.
class CachingDriver {
 public:
  explicit CachingDriver(std::shared_ptr<Gpu> gpu);
  ~CachingDriver();
  CachingDriver(const CachingDriver&) = delete;
  CachingDriver& operator=(const CachingDriver&) = delete;

  std::vector<std::vector<uint8_t>> given;  // initial data of the caches
  std::vector<uint8_t> data;                // of every cache
  bool refuses = false;                     // initial data

 private:
  static VkResult VKAPI_CALL create(VkDevice device, const VkPipelineCacheCreateInfo* info,
                                    const VkAllocationCallbacks* allocator, VkPipelineCache* cache);
  static VkResult VKAPI_CALL get(VkDevice device, VkPipelineCache cache, size_t* size, void* data);

  const std::shared_ptr<Gpu> gpu_;
  const PFN_vkCreatePipelineCache create_;  // the real ones
  const PFN_vkGetPipelineCacheData get_;
};

}  // namespace hearth::vulkan
