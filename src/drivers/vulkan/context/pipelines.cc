// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/context/pipelines.h"

#include <array>
#include <mutex>

#include "drivers/vulkan/shaders/shaders.h"

namespace hearth::vulkan {

Result<std::unique_ptr<Pipelines>> Pipelines::create(std::shared_ptr<Gpu> gpu) {
  std::unique_ptr<Pipelines> pipelines(new Pipelines(std::move(gpu)));
  HEARTH_TRY(pipelines->createLayouts());
  return pipelines;
}

Status Pipelines::createLayouts() {
  const VolkDeviceTable& vk = gpu_->functions();
  std::array<VkDescriptorSetLayoutBinding, kBindings> bindings{};
  for (uint32_t i = 0; i < kBindings; ++i)
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo sets{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  sets.bindingCount = kBindings;
  sets.pBindings = bindings.data();
  HEARTH_TRY(
      checkResult(vk.vkCreateDescriptorSetLayout(gpu_->device(), &sets, nullptr, &setLayout_),
                  "vkCreateDescriptorSetLayout"));
  const VkPushConstantRange parameters{VK_SHADER_STAGE_COMPUTE_BIT, 0, kParameterBytes};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = 1;
  info.pSetLayouts = &setLayout_;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &parameters;
  return checkResult(vk.vkCreatePipelineLayout(gpu_->device(), &info, nullptr, &layout_),
                     "vkCreatePipelineLayout");
}

Result<VkPipeline> Pipelines::find(const std::string& shader, uint32_t constant) {
  const std::lock_guard lock(mutex_);
  if (const auto it = pipelines_.find({shader, constant}); it != pipelines_.end())
    return it->second;
  const EmbeddedShader* embedded = findShader(shader);
  if (embedded == nullptr)
    return fail(ErrorCode::kUnsupported, "The driver has no shader {}.", shader);
  const VolkDeviceTable& vk = gpu_->functions();
  VkShaderModuleCreateInfo moduleInfo{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  moduleInfo.codeSize = embedded->words.size_bytes();
  moduleInfo.pCode = embedded->words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  HEARTH_TRY(checkResult(vk.vkCreateShaderModule(gpu_->device(), &moduleInfo, nullptr, &module),
                         "vkCreateShaderModule"));
  const VkSpecializationMapEntry entry{0, 0, sizeof(constant)};
  const VkSpecializationInfo constants{1, &entry, sizeof(constant), &constant};
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  info.layout = layout_;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result =
      vk.vkCreateComputePipelines(gpu_->device(), VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
  vk.vkDestroyShaderModule(gpu_->device(), module, nullptr);
  HEARTH_TRY(checkResult(result, "vkCreateComputePipelines"));
  pipelines_.emplace(std::pair(shader, constant), pipeline);
  return pipeline;
}

Pipelines::~Pipelines() {
  if (gpu_->isLost()) return;
  const VolkDeviceTable& vk = gpu_->functions();
  for (const auto& [key, pipeline] : pipelines_)
    vk.vkDestroyPipeline(gpu_->device(), pipeline, nullptr);
  vk.vkDestroyPipelineLayout(gpu_->device(), layout_, nullptr);
  vk.vkDestroyDescriptorSetLayout(gpu_->device(), setLayout_, nullptr);
}

}  // namespace hearth::vulkan
