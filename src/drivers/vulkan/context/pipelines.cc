// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/context/pipelines.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "drivers/vulkan/shaders/shaders.h"

namespace hearth::vulkan {
namespace {

// Whether the head of a pipeline cache names this device, as Vulkan defines the head. Some drivers
// do not look themselves.
bool isOfDevice(std::span<const uint8_t> saved, const GpuFacts& facts) {
  VkPipelineCacheHeaderVersionOne head;
  if (saved.size() < sizeof head) return false;
  std::memcpy(&head, saved.data(), sizeof head);
  return head.headerSize == sizeof head &&
         head.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         head.vendorID == facts.vendorId && head.deviceID == facts.deviceId &&
         std::ranges::equal(head.pipelineCacheUUID, facts.pipelineCacheUuid);
}

// Whether there is more than a head.
bool hasMachineCode(std::span<const uint8_t> data) {
  return data.size() > sizeof(VkPipelineCacheHeaderVersionOne);
}

}  // namespace

Result<std::unique_ptr<Pipelines>> Pipelines::create(std::shared_ptr<Gpu> gpu,
                                                     std::shared_ptr<PipelineStore> store) {
  std::unique_ptr<Pipelines> pipelines(new Pipelines(std::move(gpu), std::move(store)));
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

Result<VkPipeline> Pipelines::find(const PipelineKey& key, bool* isRestored) {
  const std::lock_guard lock(mutex_);
  auto it = pipelines_.find(key);
  if (it == pipelines_.end()) {
    const bool hasStore = store_ != nullptr;
    HEARTH_ASSIGN(Compiled compiled,
                  compile(key, hasStore ? store_->find(key) : std::vector<uint8_t>()));
    if (hasStore && !compiled.isRestored && hasMachineCode(compiled.data))
      store_->keep({key, compiled.data});
    it = pipelines_.emplace(key, std::move(compiled)).first;
  }
  if (isRestored != nullptr) *isRestored = it->second.isRestored;
  return it->second.pipeline;
}

void Pipelines::saveToStore() {
  if (store_ != nullptr) store_->save();
}

void Pipelines::flushStore() {
  if (store_ != nullptr) store_->flush();
}

Status Pipelines::restore(const SavedPipeline& saved) {
  const std::lock_guard lock(mutex_);
  if (pipelines_.contains(saved.key)) return {};
  HEARTH_ASSIGN(Compiled compiled, compile(saved.key, saved.data));
  pipelines_.emplace(saved.key, std::move(compiled));
  return {};
}

SavedPipeline Pipelines::save(const PipelineKey& key) {
  const std::lock_guard lock(mutex_);
  const auto it = pipelines_.find(key);
  if (it == pipelines_.end()) return {key, {}};
  return {key, it->second.data};
}

Result<Pipelines::Compiled> Pipelines::compile(const PipelineKey& key,
                                               std::span<const uint8_t> saved) {
  const EmbeddedShader* embedded = findShader(key.shader);
  if (embedded == nullptr)
    return fail(ErrorCode::kUnsupported, "The driver has no shader {}.", key.shader);
  const VolkDeviceTable& vk = gpu_->functions();
  VkShaderModuleCreateInfo moduleInfo{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  moduleInfo.codeSize = embedded->words.size_bytes();
  moduleInfo.pCode = embedded->words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  HEARTH_TRY(checkResult(vk.vkCreateShaderModule(gpu_->device(), &moduleInfo, nullptr, &module),
                         "vkCreateShaderModule"));
  const VkSpecializationMapEntry entry{0, 0, sizeof(key.constant)};
  const VkSpecializationInfo constants{1, &entry, sizeof(key.constant), &key.constant};
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  info.layout = layout_;
  Compiled compiled;
  const VkPipelineCache cache = createCache(saved, &compiled.isRestored);
  const VkResult result =
      vk.vkCreateComputePipelines(gpu_->device(), cache, 1, &info, nullptr, &compiled.pipeline);
  if (result == VK_SUCCESS) compiled.data = dataOf(cache);
  vk.vkDestroyPipelineCache(gpu_->device(), cache, nullptr);
  vk.vkDestroyShaderModule(gpu_->device(), module, nullptr);
  HEARTH_TRY(checkResult(result, "vkCreateComputePipelines"));
  return compiled;
}

VkPipelineCache Pipelines::createCache(std::span<const uint8_t> saved, bool* isTaken) {
  const VolkDeviceTable& vk = gpu_->functions();
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  VkPipelineCache cache = VK_NULL_HANDLE;
  if (isOfDevice(saved, gpu_->facts())) {
    info.initialDataSize = saved.size();
    info.pInitialData = saved.data();
    if (vk.vkCreatePipelineCache(gpu_->device(), &info, nullptr, &cache) == VK_SUCCESS) {
      *isTaken = hasMachineCode(saved);
      return cache;
    }
    info.initialDataSize = 0;
    info.pInitialData = nullptr;
  }
  // Without a cache the pipeline is compiled all the same, and not kept.
  if (vk.vkCreatePipelineCache(gpu_->device(), &info, nullptr, &cache) != VK_SUCCESS)
    return VK_NULL_HANDLE;
  return cache;
}

std::vector<uint8_t> Pipelines::dataOf(VkPipelineCache cache) {
  if (cache == VK_NULL_HANDLE) return {};
  const VolkDeviceTable& vk = gpu_->functions();
  size_t size = 0;
  if (vk.vkGetPipelineCacheData(gpu_->device(), cache, &size, nullptr) != VK_SUCCESS) return {};
  std::vector<uint8_t> data(size);
  if (vk.vkGetPipelineCacheData(gpu_->device(), cache, &size, data.data()) != VK_SUCCESS) return {};
  data.resize(std::min(size, data.size()));
  return data;
}

Pipelines::~Pipelines() {
  if (gpu_->isLost()) return;
  const VolkDeviceTable& vk = gpu_->functions();
  for (const auto& [key, compiled] : pipelines_)
    vk.vkDestroyPipeline(gpu_->device(), compiled.pipeline, nullptr);
  vk.vkDestroyPipelineLayout(gpu_->device(), layout_, nullptr);
  vk.vkDestroyDescriptorSetLayout(gpu_->device(), setLayout_, nullptr);
}

}  // namespace hearth::vulkan
