// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/run_context.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace hearth::vulkan {
namespace {

// Of the places of arguments in the buffers that the host sees.
constexpr uint64_t kArgumentAlignment = 64;

uint64_t roundUp(uint64_t bytes) {
  return (bytes + kArgumentAlignment - 1) / kArgumentAlignment * kArgumentAlignment;
}

// What dispatches since the last barrier have read and written.
class PendingAccesses {
 public:
  struct Range {
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t begin = 0;
    uint64_t end = 0;
    bool isWritten = false;
  };
  // Whether a dispatch that uses these ranges has to wait for those before it.
  bool conflict(const std::vector<Range>& ranges) const {
    return std::ranges::any_of(ranges, [&](const Range& range) {
      return std::ranges::any_of(ranges_, [&](const Range& other) {
        return (range.isWritten || other.isWritten) && range.buffer == other.buffer &&
               range.begin < other.end && other.begin < range.end;
      });
    });
  }
  void add(const std::vector<Range>& ranges) {
    ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
  }
  void clear() { ranges_.clear(); }

 private:
  std::vector<Range> ranges_;
};

std::vector<uint32_t> tokensOf(const DeviceArguments& arguments) {
  std::vector<uint32_t> tokens;
  for (const auto* list : {&arguments.inputs, &arguments.outputs})
    for (const std::shared_ptr<DeviceTensor>& tensor : *list)
      tokens.push_back(tensor == nullptr ? 0 : tensor->token());
  return tokens;
}

bool isGiven(const HostPlace& place) {
  return place.buffer != nullptr;
}

bool hasHostPlaces(const DeviceArguments& arguments) {
  return std::ranges::any_of(arguments.hostInputs, isGiven) ||
         std::ranges::any_of(arguments.hostOutputs, isGiven);
}

}  // namespace

Result<std::unique_ptr<RunContext>> RunContext::create(std::shared_ptr<Gpu> gpu,
                                                       Pipelines& pipelines, const Plan& plan,
                                                       const Buffer* constants) {
  std::unique_ptr<RunContext> context(new RunContext(std::move(gpu), pipelines, plan, constants));
  HEARTH_TRY(context->allocate());
  HEARTH_TRY(context->allocateSets(plan.dispatches.size()));
  return context;
}

RunContext::~RunContext() {
  if (!gpu_->isLost()) gpu_->functions().vkDestroyDescriptorPool(gpu_->device(), pool_, nullptr);
}

Status RunContext::allocate() {
  if (plan_.arenaBytes != 0) {
    HEARTH_ASSIGN(arena_, Buffer::create(gpu_, plan_.arenaBytes, Buffer::Kind::kDevice));
  }
  HEARTH_ASSIGN(commands_, Commands::create(gpu_));
  return {};
}

Status RunContext::allocateSets(size_t count) {
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
  const std::vector<VkDescriptorSetLayout> layouts(count, pipelines_.setLayout());
  VkDescriptorSetAllocateInfo allocation{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
  allocation.descriptorPool = pool_;
  allocation.descriptorSetCount = sets;
  allocation.pSetLayouts = layouts.data();
  sets_.resize(count);
  return checkResult(vk.vkAllocateDescriptorSets(gpu_->device(), &allocation, sets_.data()),
                     "vkAllocateDescriptorSets");
}

bool RunContext::isBoundTo(const DeviceArguments& arguments) const {
  return !hasHostPlaces(arguments) && tokens_ == tokensOf(arguments);
}

void RunContext::leaveHost() {
  if (isAtHost_) tokens_.reset();
}

Status RunContext::bind(const DeviceArguments& arguments) {
  tokens_.reset();
  HEARTH_TRY(placeArguments(arguments));
  findPlaces(arguments);
  HEARTH_TRY(record(arguments));
  tokens_ = tokensOf(arguments);
  isAtHost_ = hasHostPlaces(arguments);
  return {};
}

Status RunContext::placeArguments(const DeviceArguments& arguments) {
  // Gives the host's arguments their places in a buffer that it sees, and makes one where it lacks
  // room.
  const auto place = [&](const std::vector<TensorId>& ids,
                         const std::vector<std::shared_ptr<DeviceTensor>>& tensors,
                         const std::vector<HostPlace>& hostPlaces, Buffer::Kind kind,
                         std::unique_ptr<Buffer>* buffer, std::vector<uint8_t*>* pointers,
                         uint64_t bytes) -> Status {
    std::vector<uint64_t> offsets;
    const auto isOfHost = [&](size_t i) {
      return ids[i] != kNoTensor && tensors[i] == nullptr && !isGiven(hostPlaces[i]);
    };
    for (size_t i = 0; i < ids.size(); ++i) {
      offsets.push_back(bytes);
      if (isOfHost(i)) bytes += roundUp(plan_.tensors[ids[i]].bytes);
    }
    if (bytes != 0 && (*buffer == nullptr || (*buffer)->bytes() < bytes)) {
      buffer->reset();
      HEARTH_ASSIGN(*buffer, Buffer::create(gpu_, bytes, kind));
    }
    pointers->clear();
    for (size_t i = 0; i < ids.size(); ++i)
      pointers->push_back(isOfHost(i) ? (*buffer)->data() + offsets[i] : nullptr);
    return {};
  };
  HEARTH_TRY(place(plan_.inputs, arguments.inputs, arguments.hostInputs, Buffer::Kind::kUpload,
                   &upload_, &inputs_, 0));
  // The fault lies before the outputs.
  const bool hasFault = plan_.fault != kNoTensor;
  HEARTH_TRY(place(plan_.outputs, arguments.outputs, arguments.hostOutputs, Buffer::Kind::kDownload,
                   &download_, &outputs_, hasFault ? kArgumentAlignment : 0));
  fault_ = hasFault ? download_->data() : nullptr;
  return {};
}

// A tensor of the client takes the place of the model's input, as does its memory, unless the GPU
// would read that through a bus, more than once, or it is an output, too, which would be copied
// after another output may have overwritten it. A tensor takes that of an output, too, unless its
// memory is an input as well, or the output is: then it is copied at the end. So it is where
// another output takes the same place.
void RunContext::findPlaces(const DeviceArguments& arguments) {
  places_.assign(plan_.tensors.size(), {});
  for (size_t i = 0; i < places_.size(); ++i) {
    const PlannedTensor& tensor = plan_.tensors[i];
    const Buffer* const buffer =
        tensor.place == PlannedTensor::Place::kArena ? arena_.get() : constants_;
    if (tensor.root == i && buffer != nullptr) places_[i] = {buffer->handle(), tensor.offset};
  }
  const auto rootId = [&](TensorId id) {
    return &plan_.rootOf(id) - plan_.tensors.data();
  };
  std::vector<bool> isOutput(places_.size());
  for (const TensorId output : plan_.outputs) isOutput[rootId(output)] = true;
  // Whether the memory of an input that is an output, too, gets another output before it is copied.
  // Of two dma-bufs nobody knows whether they show the same memory.
  const bool writesHost = std::ranges::any_of(arguments.hostOutputs, isGiven);
  const auto isOverwritten = [&](size_t i) {
    const auto root = rootId(plan_.inputs[i]);
    if (!isOutput[root]) return false;
    if (isGiven(arguments.hostInputs[i])) return writesHost;
    for (size_t o = 0; o < plan_.outputs.size(); ++o)
      if (arguments.outputs[o] == arguments.inputs[i] && rootId(plan_.outputs[o]) != root)
        return true;
    return false;
  };
  const GpuFacts& facts = gpu_->facts();
  inPlace_.assign(plan_.inputs.size(), false);
  std::vector<bool> isInput(places_.size());
  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    if (plan_.inputs[i] == kNoTensor) continue;
    const auto root = rootId(plan_.inputs[i]);
    isInput[root] = true;
    const HostPlace& host = arguments.hostInputs[i];
    if (arguments.inputs[i] != nullptr && !isOverwritten(i)) {
      places_[root] = {arguments.inputs[i]->handle(), 0};
      inPlace_[i] = true;
    } else if (isGiven(host) && !isOverwritten(i) &&
               facts.type != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU &&
               host.offset % facts.rangeAlignment == 0) {
      places_[root] = {host.buffer->handle(), host.offset};
      inPlace_[i] = true;
    }
  }
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const std::shared_ptr<DeviceTensor>& tensor = arguments.outputs[i];
    const auto root = rootId(plan_.outputs[i]);
    const bool isFree = !isInput[root] &&
                        plan_.tensors[root].place == PlannedTensor::Place::kArena &&
                        std::ranges::find(arguments.inputs, tensor) == arguments.inputs.end();
    if (tensor != nullptr && isFree) places_[root] = {tensor->handle(), 0};
  }
}

bool RunContext::hasFault() const {
  uint32_t fault = 0;
  if (fault_ != nullptr) std::memcpy(&fault, fault_, sizeof fault);
  return fault != 0;
}

const RunContext::Place& RunContext::placeOf(TensorId id) const {
  return places_[&plan_.rootOf(id) - plan_.tensors.data()];
}

void RunContext::recordCopy(VkBuffer from, VkBuffer to, const VkBufferCopy& region) {
  gpu_->functions().vkCmdCopyBuffer(commands_->handle(), from, to, 1, &region);
}

Status RunContext::record(const DeviceArguments& arguments) {
  HEARTH_TRY(commands_->begin());
  for (const ImportedDmaBuf& imported : arguments.dmaBufs)
    commands_->acquire(imported.buffer->handle());
  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    if (plan_.inputs[i] == kNoTensor || inPlace_[i]) continue;
    const Place& place = placeOf(plan_.inputs[i]);
    const uint64_t bytes = plan_.tensors[plan_.inputs[i]].bytes;
    if (const DeviceTensor* const tensor = arguments.inputs[i].get()) {
      recordCopy(tensor->handle(), place.buffer, {0, place.offset, bytes});
    } else if (const HostPlace& host = arguments.hostInputs[i]; isGiven(host)) {
      recordCopy(host.buffer->handle(), place.buffer, {host.offset, place.offset, bytes});
    } else {
      const auto from = static_cast<VkDeviceSize>(inputs_[i] - upload_->data());
      recordCopy(upload_->handle(), place.buffer, {from, place.offset, bytes});
    }
  }
  commands_->barrier();
  HEARTH_TRY(recordDispatches());
  commands_->barrier();
  for (size_t i = 0; i < plan_.outputs.size(); ++i) {
    const Place& place = placeOf(plan_.outputs[i]);
    const uint64_t bytes = plan_.tensors[plan_.outputs[i]].bytes;
    if (const DeviceTensor* const tensor = arguments.outputs[i].get()) {
      if (place.buffer != tensor->handle())
        recordCopy(place.buffer, tensor->handle(), {place.offset, 0, bytes});
      continue;
    }
    if (const HostPlace& host = arguments.hostOutputs[i]; isGiven(host)) {
      recordCopy(place.buffer, host.buffer->handle(), {place.offset, host.offset, bytes});
      continue;
    }
    const auto to = static_cast<VkDeviceSize>(outputs_[i] - download_->data());
    recordCopy(place.buffer, download_->handle(), {place.offset, to, bytes});
  }
  if (fault_ != nullptr) {
    const Place& place = placeOf(plan_.fault);
    recordCopy(place.buffer, download_->handle(), {place.offset, 0, sizeof(uint32_t)});
  }
  for (const ImportedDmaBuf& imported : arguments.dmaBufs)
    commands_->release(imported.buffer->handle());
  commands_->barrier();
  return commands_->end();
}

Status RunContext::recordDispatches() {
  const VolkDeviceTable& vk = gpu_->functions();
  PendingAccesses pending;
  const uint64_t most = gpu_->facts().mostProducts;
  uint64_t room = most;  // for products, in this submission
  for (size_t i = 0; i < plan_.dispatches.size(); ++i) {
    const Dispatch& dispatch = plan_.dispatches[i];
    if (dispatch.products > room && room != most) {
      HEARTH_TRY(commands_->split());
      room = most;
    }
    room -= std::min(room, dispatch.products);
    const VkCommandBuffer commands = commands_->handle();
    HEARTH_ASSIGN(const VkPipeline pipeline, pipelines_.find({dispatch.shader, dispatch.constant}));
    // Each tensor is bound by itself: robust accesses end where it ends.
    std::array<VkDescriptorBufferInfo, kBindings> ranges{};
    std::array<VkWriteDescriptorSet, kBindings> writes{};
    std::vector<PendingAccesses::Range> accesses;
    for (uint32_t b = 0; b < dispatch.bindings.size(); ++b) {
      const Binding& binding = dispatch.bindings[b];
      const Place& place = placeOf(binding.tensor);
      const uint64_t bytes = plan_.tensors[binding.tensor].bytes;
      accesses.push_back({place.buffer, place.offset, place.offset + bytes, binding.isWritten});
      ranges[b] = {place.buffer, place.offset, bytes};
      writes[b] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
      writes[b].dstSet = sets_[i];
      writes[b].dstBinding = b;
      writes[b].descriptorCount = 1;
      writes[b].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      writes[b].pBufferInfo = &ranges[b];
    }
    if (pending.conflict(accesses)) {
      commands_->barrier();
      pending.clear();
    }
    pending.add(accesses);
    vk.vkUpdateDescriptorSets(gpu_->device(), static_cast<uint32_t>(dispatch.bindings.size()),
                              writes.data(), 0, nullptr);
    vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.layout(), 0, 1,
                               &sets_[i], 0, nullptr);
    vk.vkCmdPushConstants(commands, pipelines_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                          static_cast<uint32_t>(dispatch.parameters.size() * sizeof(uint32_t)),
                          dispatch.parameters.data());
    vk.vkCmdDispatch(commands, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
  }
  return {};
}

}  // namespace hearth::vulkan
