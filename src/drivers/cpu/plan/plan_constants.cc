// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/plan_constants.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cache/identity/pool_source.h"
#include "drivers/cpu/platform/read_slack.h"

namespace hearth::cpu {
namespace {

// Smaller results that nodes read element by element are computed at each start: it takes no longer
// than to find them.
constexpr uint64_t kStoredBytes = uint64_t{64} << 10;

constexpr uint64_t kMostTaken = uint64_t{128} << 20;

std::atomic<uint64_t> nextNumber = 0;

}  // namespace

PlanConstants::PlanConstants(const graph::Model& model, PackedWeights* weights, uint32_t subgraph,
                             const WidenedSubgraph* widened)
    : model_(model),
      widened_(widened),
      subgraph_(widened != nullptr ? widened->subgraph() : model.subgraphs[subgraph]),
      weights_(weights),
      converted_(subgraph_.operands.size()),
      computed_(subgraph_.operands.size()),
      views_(subgraph_.operands.size(), UINT32_MAX),
      number_(nextNumber.fetch_add(1, std::memory_order_relaxed)) {
  for (uint32_t g = 0; g < subgraph; ++g)
    firstOperand_ += static_cast<uint32_t>(model.subgraphs[g].operands.size());
}

ConvertedConstantRef PlanConstants::makeConverted(const ops::OperationContext& context) const {
  ops::OperationContext own = context;
  std::vector<ConvertedConstantRef> inputs;
  for (const uint32_t input : context.operation->inputs) {
    const uint32_t base = baseOf(input);
    inputs.push_back(computed_[base] == nullptr ? converted_[base] : nullptr);
  }
  return std::make_shared<ConvertedConstant>(std::move(own), std::move(inputs));
}

// A wide operand has the number of its own one, with another highest bit.
WeightPlace PlanConstants::placeOf(uint32_t operand) const {
  const bool isWide = widened_ != nullptr && widened_->isWide(operand);
  const uint32_t number = firstOperand_ + (isWide ? widened_->narrow(operand) : operand);
  return {WeightPlace::kConstants, isWide ? WeightPlace::kWide | number : number};
}

void PlanConstants::setConverted(uint32_t operand, const ops::OperationContext& context) {
  converted_[operand] = makeConverted(context);
}

bool PlanConstants::setComputed(uint32_t operand, const ops::OperationContext& context) {
  const ConvertedConstantRef converted = makeConverted(context);
  uint8_t* const values = addCopy(converted->byteCount());
  if (!converted->writeTo(values)) {
    copies_.pop_back();
    return false;
  }
  converted_[operand] = converted;
  computed_[operand] = values;
  return true;
}

bool PlanConstants::takeRoom(uint64_t bytes) {
  if (bytes > kMostTaken - takenBytes_) return false;
  takenBytes_ += bytes;
  return true;
}

Result<const uint8_t*> PlanConstants::biasData(uint32_t operand, WeightPlace place) {
  if (converted(operand) != nullptr) return rawData(operand);
  return weightData(operand, place);
}

uint8_t* PlanConstants::addCopy(uint64_t bytes) {
  copies_.push_back(std::make_unique<uint8_t[]>(bytes + kReadSlack));
  return copies_.back().get();
}

const uint8_t* PlanConstants::copyOf(const graph::Operand& operand, const uint8_t* data) {
  uint8_t* const copy = addCopy(operand.location.length);
  std::memcpy(copy, data, operand.location.length);
  return copy;
}

const uint8_t* PlanConstants::elements(uint32_t operandIndex) {
  const uint32_t index = baseOf(operandIndex);
  if (computed_[index] != nullptr) return computed_[index];
  if (const ConvertedConstantRef& converted = converted_[index]) {
    if (converted->byteCount() >= kStoredBytes) {
      const auto kept = rawData(index);
      if (kept && *kept != nullptr) return *kept;
    }
    uint8_t* const copy = addCopy(converted->byteCount());
    (void)converted->writeTo(copy);
    return copy;
  }
  const graph::Operand& operand = subgraph_.operands[index];
  const uint8_t* const data = model_.constantData(operand);
  const size_t element = std::max<size_t>(1, graph::elementSize(operand.type));
  if (data == nullptr ||
      (reinterpret_cast<uintptr_t>(data) % element == 0 && hasReadableTail(operand)))
    return data;
  const auto kept = rawData(index);
  return kept && *kept != data ? *kept : copyOf(operand, data);
}

const uint8_t* PlanConstants::weightData(uint32_t operandIndex, WeightPlace place) {
  const uint32_t index = baseOf(operandIndex);
  if (computed_[index] != nullptr) return computed_[index];
  const graph::Operand& operand = subgraph_.operands[index];
  if (converted_[index] != nullptr)
    return operand.type == graph::OperandType::kTensorFloat32 ? nullptr : elements(index);
  const uint8_t* data = model_.constantData(operand);
  if (data == nullptr || hasReadableTail(operand)) return data;
  if (weights_ != nullptr && weights_->has(place)) return data;
  return copyOf(operand, data);
}

Result<const uint8_t*> PlanConstants::rawData(uint32_t operandIndex) {
  const uint32_t index = baseOf(operandIndex);
  if (computed_[index] != nullptr) return computed_[index];
  if (const ConvertedConstantRef& converted = converted_[index]) {
    if (weights_ == nullptr) return nullptr;
    return weights_->pack(placeOf(index), "CONSTANT", constantSource(index).get(),
                          static_cast<size_t>(converted->byteCount()),
                          [&](uint8_t* data) { (void)converted->writeTo(data); });
  }
  const graph::Operand& operand = subgraph_.operands[index];
  const uint8_t* data = model_.constantData(operand);
  if (data == nullptr || weights_ == nullptr) return data;
  // A value that follows from shapes is not among the weights of a plan for other shapes.
  if (operand.lifetime == graph::Lifetime::kConstantCopy && weights_->isAllPreset() &&
      !weights_->has(placeOf(index)))
    return copyOf(operand, data);
  return weights_->constant(firstOperand_ + index, {data, operand.location.length},
                            constantSource(index).get());
}

std::shared_ptr<const base::Sha256Digest> PlanConstants::packingSource(
    graph::OperationType type, std::span<const uint32_t> operands,
    std::span<const uint64_t> parameters) {
  if (weights_ == nullptr || weights_->isSealed() || weights_->isAllPreset()) return nullptr;
  base::Sha256 name;
  base::Sha256 attributes;
  PackingSource content;
  const auto add = [&](const auto& value) {
    name.update(&value, sizeof value);
    attributes.update(&value, sizeof value);
  };
  add(type);
  for (const uint64_t parameter : parameters) add(parameter);
  for (const uint32_t index : operands) {
    const bool isGiven = index != UINT32_MAX;
    add(isGiven);
    if (!isGiven) continue;
    // Computed once for all parts of a layer: the last layer of a language model has a megabyte of
    // scales.
    auto known = operandSources_.find(index);
    if (known == operandSources_.end())
      known = operandSources_.emplace(index, operandSource(index)).first;
    if (!known->second) return nullptr;
    name.update(known->second->name);
    attributes.update(known->second->content.attributes);
    const std::vector<PackingSource::Range>& ranges = known->second->content.ranges;
    content.ranges.insert(content.ranges.end(), ranges.begin(), ranges.end());
  }
  auto source = std::make_shared<const base::Sha256Digest>(name.finish());
  if (weights_->notesSources()) {
    content.attributes = attributes.finish();
    weights_->describe(*source, std::move(content));
  }
  return source;
}

std::shared_ptr<const base::Sha256Digest> PlanConstants::constantSource(uint32_t operand) {
  constexpr graph::OperationType kNone{-1};
  return packingSource(kNone, {&operand, 1}, {});
}

// None where the constant lies in memory without a file.
std::optional<PlanConstants::OperandSource> PlanConstants::operandSource(uint32_t index) {
  OperandSource source;
  base::Sha256 name;
  base::Sha256 attributes;
  const auto addBytes = [&](const void* data, size_t size) {
    name.update(data, size);
    attributes.update(data, size);
  };
  const auto add = [&](const auto& value) {
    addBytes(&value, sizeof value);
  };
  const auto finished = [&] {
    source.name = name.finish();
    source.content.attributes = attributes.finish();
    return std::move(source);
  };
  const graph::Operand& operand = subgraph_.operands[index];
  add(operand.type);
  add(operand.scale);
  add(operand.zeroPoint);
  add(operand.perChannel.channelDim);
  add(operand.perChannel.scales.size());
  if (!operand.perChannel.scales.empty()) add(operand.perChannel.scales.digest());
  const auto addInner = [&](uint32_t inner) {
    const auto found = operandSource(inner);
    if (!found) return false;
    name.update(found->name);
    attributes.update(found->content.attributes);
    source.content.ranges.insert(source.content.ranges.end(), found->content.ranges.begin(),
                                 found->content.ranges.end());
    return true;
  };
  const bool isView = views_[index] != UINT32_MAX;
  add(isView);
  if (isView) {
    if (!addInner(views_[index])) return std::nullopt;
    return finished();
  }
  const ConvertedConstantRef& converted = converted_[index];
  add(converted != nullptr);
  if (converted != nullptr) {
    const graph::Operation& operation = converted->operation();
    add(operation.type);
    add(operation.inputs.size());
    for (const uint32_t input : operation.inputs)
      if (!addInner(input)) return std::nullopt;
    return finished();
  }
  if (!operand.isConstant()) return finished();
  for (const uint32_t dimension : operand.dimensions) add(dimension);
  add(operand.location.length);
  if (operand.lifetime == graph::Lifetime::kConstantCopy) {
    addBytes(model_.constantData(operand), operand.location.length);
    return finished();
  }
  const memory::Pool& pool = *model_.pools[operand.location.pool];
  if (pool.fd() < 0) return std::nullopt;
  poolSources_.resize(model_.pools.size());
  std::optional<cache::ContentSource>& file = poolSources_[operand.location.pool];
  if (!file) file = cache::sourceOf(pool);
  // Other models use the packing under this name without comparing bytes, so the file's identity
  // has to show every change. Otherwise it is a name that no other model has.
  if (file->tellsChanges() && file->file()->proof != cache::ChangeProof::kSeal) {
    name.update(cache::contentKey(*file->file(), pool.offset() + operand.location.offset,
                                  operand.location.length));
  } else {
    name.update(&number_, sizeof number_);
    name.update(&index, sizeof index);
  }
  source.content.ranges = {
      {operand.location.pool, operand.location.offset, operand.location.length}};
  return finished();
}

void PlanConstants::releaseAfterPacking(Node* node, uint32_t index) const {
  if (const auto pages = releasable(index); !pages.empty()) node->packedSources.push_back(pages);
}

std::span<const uint8_t> PlanConstants::releasable(uint32_t index) const {
  const uint32_t base = baseOf(index);
  if (converted_[base] != nullptr) {
    const std::optional<uint32_t> source = converted_[base]->source();
    return source ? releasable(*source) : std::span<const uint8_t>();
  }
  const graph::Operand& operand = subgraph_.operands[base];
  if (operand.lifetime != graph::Lifetime::kConstantReference) return {};
  const memory::Pool& pool = *model_.pools[operand.location.pool];
  if (pool.kind() != memory::PoolKind::kMmapFd || pool.writable()) return {};
  return {pool.data() + operand.location.offset, operand.location.length};
}

bool PlanConstants::hasReadableTail(const graph::Operand& operand) const {
  const graph::DataLocation& location = operand.location;
  const uint64_t end = location.offset + location.length + kReadSlack;
  if (operand.lifetime == graph::Lifetime::kConstantCopy) return end <= model_.constantBytes.size();
  const memory::Pool& pool = *model_.pools[location.pool];
  return pool.kind() != memory::PoolKind::kBorrowed || end <= pool.size();
}

}  // namespace hearth::cpu
