// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <volk.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/vulkan/context/gpu.h"

namespace hearth::vulkan {

// Of all shaders: storage buffers at bindings 0 to 4, and bytes of parameters. Every device of
// Vulkan gives so many.
inline constexpr uint32_t kBindings = 5;
inline constexpr uint32_t kParameterBytes = 128;

// The compiled pipelines of one device. Models that use the same shader share its pipeline.
// Thread-safe.
class Pipelines {
 public:
  static Result<std::unique_ptr<Pipelines>> create(std::shared_ptr<Gpu> gpu);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // The pipeline of an embedded shader whose constant 0 has the value `constant`; compiles it at
  // its first use. Lives as long as this object.
  Result<VkPipeline> find(const std::string& shader, uint32_t constant);

  VkPipelineLayout layout() const { return layout_; }
  VkDescriptorSetLayout setLayout() const { return setLayout_; }

 private:
  explicit Pipelines(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  Status createLayouts();

  std::shared_ptr<Gpu> gpu_;
  VkDescriptorSetLayout setLayout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  base::Mutex mutex_;
  std::map<std::pair<std::string, uint32_t>, VkPipeline> pipelines_;
};

}  // namespace hearth::vulkan
