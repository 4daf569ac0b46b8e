// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/run_context.h"

#include <algorithm>
#include <array>

namespace hearth::vulkan {
namespace {

// Of the places of arguments in the buffers that the host sees.
constexpr uint64_t kArgumentAlignment = 64;

uint64_t roundUp(uint64_t bytes) {
  return (bytes + kArgumentAlignment - 1) / kArgumentAlignment * kArgumentAlignment;
}

// What dispatches since the last barrier have read and written in the arena.
class PendingAccesses {
 public:
  // Whether a dispatch has to wait for those before it.
  bool conflict(const Plan& plan, const Dispatch& dispatch) const {
    return std::ranges::any_of(dispatch.bindings, [&](const Binding& binding) {
      const Range range = rangeOf(plan, binding);
      return std::ranges::any_of(ranges_, [&](const Range& other) {
        return (range.isWritten || other.isWritten) && range.begin < other.end &&
               other.begin < range.end;
      });
    });
  }
  void add(const Plan& plan, const Dispatch& dispatch) {
    for (const Binding& binding : dispatch.bindings) ranges_.push_back(rangeOf(plan, binding));
  }
  void clear() { ranges_.clear(); }

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
    bool isWritten;
  };
  static Range rangeOf(const Plan& plan, const Binding& binding) {
    const PlannedTensor& root = plan.rootOf(binding.tensor);
    // Nobody writes constants.
    if (root.place == PlannedTensor::Place::kConstants) return {0, 0, false};
    return {root.offset, root.offset + root.bytes, binding.isWritten};
  }
  std::vector<Range> ranges_;
};

}  // namespace

Result<std::unique_ptr<RunContext>> RunContext::create(std::shared_ptr<Gpu> gpu,
                                                       Pipelines& pipelines, const Plan& plan,
                                                       const Buffer* constants) {
  std::unique_ptr<RunContext> context(new RunContext(std::move(gpu)));
  HEARTH_TRY(context->allocate(plan));
  HEARTH_TRY(context->allocateSets(pipelines, plan.dispatches.size()));
  HEARTH_TRY(context->record(pipelines, plan, constants));
  return context;
}

RunContext::~RunContext() {
  if (!gpu_->isLost()) gpu_->functions().vkDestroyDescriptorPool(gpu_->device(), pool_, nullptr);
}

Status RunContext::allocate(const Plan& plan) {
  const auto total = [&](const std::vector<TensorId>& ids) {
    uint64_t bytes = 0;
    for (const TensorId id : ids)
      if (id != kNoTensor) bytes += roundUp(plan.tensors[id].bytes);
    return bytes;
  };
  const auto places = [&](const std::vector<TensorId>& ids, uint8_t* first) {
    std::vector<uint8_t*> pointers;
    for (const TensorId id : ids) {
      pointers.push_back(id == kNoTensor ? nullptr : first);
      if (id != kNoTensor) first += roundUp(plan.tensors[id].bytes);
    }
    return pointers;
  };
  if (plan.arenaBytes != 0) {
    HEARTH_ASSIGN(arena_, Buffer::create(gpu_, plan.arenaBytes, Buffer::Kind::kDevice));
  }
  if (const uint64_t bytes = total(plan.inputs); bytes != 0) {
    HEARTH_ASSIGN(upload_, Buffer::create(gpu_, bytes, Buffer::Kind::kUpload));
  }
  if (const uint64_t bytes = total(plan.outputs); bytes != 0) {
    HEARTH_ASSIGN(download_, Buffer::create(gpu_, bytes, Buffer::Kind::kDownload));
  }
  inputs_ = places(plan.inputs, upload_ == nullptr ? nullptr : upload_->data());
  outputs_ = places(plan.outputs, download_ == nullptr ? nullptr : download_->data());
  HEARTH_ASSIGN(commands_, Commands::create(gpu_));
  return {};
}

Status RunContext::allocateSets(const Pipelines& pipelines, size_t count) {
  if (count == 0) return {};
  const auto sets = static_cast<uint32_t>(count);
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, sets * kBindings};
  VkDescriptorPoolCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
  info.maxSets = sets;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  const VolkDeviceTable& vk = gpu_->functions();
  HEARTH_TRY(checkResult(vk.vkCreateDescriptorPool(gpu_->device(), &info, nullptr, &pool_),
                         "vkCreateDescriptorPool"));
  const std::vector<VkDescriptorSetLayout> layouts(count, pipelines.setLayout());
  VkDescriptorSetAllocateInfo allocation{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocation.descriptorPool = pool_;
  allocation.descriptorSetCount = sets;
  allocation.pSetLayouts = layouts.data();
  sets_.resize(count);
  return checkResult(vk.vkAllocateDescriptorSets(gpu_->device(), &allocation, sets_.data()),
                     "vkAllocateDescriptorSets");
}

Status RunContext::record(Pipelines& pipelines, const Plan& plan, const Buffer* constants) {
  const VolkDeviceTable& vk = gpu_->functions();
  const auto bufferOf = [&](const PlannedTensor& root) {
    return root.place == PlannedTensor::Place::kArena ? arena_->handle() : constants->handle();
  };
  HEARTH_TRY(commands_->begin());
  const VkCommandBuffer commands = commands_->handle();
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (plan.inputs[i] == kNoTensor) continue;
    const PlannedTensor& root = plan.rootOf(plan.inputs[i]);
    const auto from = static_cast<VkDeviceSize>(inputs_[i] - upload_->data());
    const VkBufferCopy region{from, root.offset, root.bytes};
    vk.vkCmdCopyBuffer(commands, upload_->handle(), bufferOf(root), 1, &region);
  }
  commands_->barrier();
  PendingAccesses pending;
  for (size_t i = 0; i < plan.dispatches.size(); ++i) {
    const Dispatch& dispatch = plan.dispatches[i];
    if (pending.conflict(plan, dispatch)) {
      commands_->barrier();
      pending.clear();
    }
    pending.add(plan, dispatch);
    HEARTH_ASSIGN(const VkPipeline pipeline, pipelines.find({dispatch.shader, dispatch.constant}));
    // Each tensor is bound by itself: robust accesses end where it ends.
    std::array<VkDescriptorBufferInfo, kBindings> ranges{};
    std::array<VkWriteDescriptorSet, kBindings> writes{};
    for (uint32_t b = 0; b < dispatch.bindings.size(); ++b) {
      const PlannedTensor& root = plan.rootOf(dispatch.bindings[b].tensor);
      ranges[b] = {bufferOf(root), root.offset, root.bytes};
      writes[b] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
      writes[b].dstSet = sets_[i];
      writes[b].dstBinding = b;
      writes[b].descriptorCount = 1;
      writes[b].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      writes[b].pBufferInfo = &ranges[b];
    }
    vk.vkUpdateDescriptorSets(gpu_->device(), static_cast<uint32_t>(dispatch.bindings.size()),
                              writes.data(), 0, nullptr);
    vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines.layout(), 0, 1,
                               &sets_[i], 0, nullptr);
    vk.vkCmdPushConstants(commands, pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                          static_cast<uint32_t>(dispatch.parameters.size() * sizeof(uint32_t)),
                          dispatch.parameters.data());
    vk.vkCmdDispatch(commands, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
  }
  commands_->barrier();
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const PlannedTensor& root = plan.rootOf(plan.outputs[i]);
    const auto to = static_cast<VkDeviceSize>(outputs_[i] - download_->data());
    const VkBufferCopy region{root.offset, to, root.bytes};
    vk.vkCmdCopyBuffer(commands, bufferOf(root), download_->handle(), 1, &region);
  }
  commands_->barrier();
  return commands_->end();
}

}  // namespace hearth::vulkan
