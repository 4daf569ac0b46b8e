// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/model.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/caught.h"
#include "base/format.h"
#include "frontends/nnapi/objects/extensions.h"
#include "frontends/nnapi/objects/operand_type.h"
#include "graph/nesting.h"
#include "graph/validated_model.h"
#include "memory/constant_pool.h"
#include "ops/nnapi_limits.h"
#include "ops/operation.h"

namespace hearth::nnapi {
namespace {

constexpr uint64_t kConstantAlignment = 64;
// Stands for the index of the pool of moved constants, which becomes the first pool.
constexpr uint32_t kMoved = UINT32_MAX;

uint64_t aligned(uint64_t offset) {
  return (offset + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
}

Status checkIndices(std::span<const uint32_t> indices, size_t operandCount, const char* role) {
  for (const uint32_t index : indices)
    if (index >= operandCount)
      return fail(ErrorCode::kBadData, "The {} {} is not below the {} operands.", role, index,
                  operandCount);
  return {};
}

}  // namespace

Model::Model() : draft_(std::make_shared<graph::Model>()) {
  draft_->subgraphs.resize(1);
}

Status Model::requireOpen() const {
  if (state_ == State::kOpen) return {};
  return fail(ErrorCode::kBadState, "{}",
              state_ == State::kFinished ? "The model is finished already."
                                         : "The model is invalid, as its finish() says.");
}

Status Model::addOperand(const ANeuralNetworksOperandType& type) {
  HEARTH_TRY(requireOpen());
  HEARTH_ASSIGN(graph::Operand operand, toOperand(type));
  if (graph::isDriverCode(operand.type)) addExtensionOf(type.type);
  draft_->main().operands.push_back(std::move(operand));
  return {};
}

Result<graph::Operand*> Model::operandForValue(int32_t index) {
  HEARTH_TRY(requireOpen());
  std::vector<graph::Operand>& operands = draft_->main().operands;
  if (index < 0 || static_cast<size_t>(index) >= operands.size())
    return fail(ErrorCode::kBadData, "There is no operand {}; the model has {}.", index,
                operands.size());
  return &operands[static_cast<size_t>(index)];
}

void Model::addExtensionOf(int32_t code) {
  if (draft_->findExtension(code) == nullptr)
    draft_->extensions.push_back({code >> 16, extensionName(code).value_or("")});
}

uint32_t Model::poolIndex(const memory::PoolRef& pool) {
  std::vector<memory::PoolRef>& pools = draft_->pools;
  const auto it = std::find(pools.begin(), pools.end(), pool);
  if (it != pools.end()) return static_cast<uint32_t>(it - pools.begin());
  pools.push_back(pool);
  return static_cast<uint32_t>(pools.size() - 1);
}

Status Model::setOperandValue(int32_t index, const void* buffer, size_t length) {
  HEARTH_ASSIGN(graph::Operand * operand, operandForValue(index));
  if (buffer == nullptr) {
    if (length != 0)
      return fail(ErrorCode::kUnexpectedNull, "The value has {} bytes at a null pointer.", length);
    operand->lifetime = graph::Lifetime::kNoValue;
    return {};
  }
  if (operand->type == graph::OperandType::kModel)
    return fail(ErrorCode::kBadData, "The operand {} is a MODEL, it takes no bytes.", index);
  HEARTH_ASSIGN(const uint64_t needed, graph::byteSize(*operand));
  if (length != needed)
    return fail(ErrorCode::kBadData, "The value of operand {} has {} bytes; {} needs {}.", index,
                length, graph::describe(*operand), needed);
  if (length <= ANEURALNETWORKS_MAX_SIZE_OF_IMMEDIATELY_COPIED_VALUES) {
    operand->location = {0, draft_->constantBytes.size(), length};
    const auto* bytes = static_cast<const uint8_t*>(buffer);
    draft_->constantBytes.insert(draft_->constantBytes.end(), bytes, bytes + length);
    // Aligns the next constant for every element type.
    draft_->constantBytes.resize((draft_->constantBytes.size() + 7) / 8 * 8);
    operand->lifetime = graph::Lifetime::kConstantCopy;
    return {};
  }
  operand->location = {static_cast<uint32_t>(draft_->pools.size()), 0, length};
  draft_->pools.push_back(memory::Pool::borrowed(buffer, length));
  operand->lifetime = graph::Lifetime::kConstantReference;
  return {};
}

Status Model::setOperandValueFromMemory(int32_t index, Memory& memory, const MemoryRange& range) {
  HEARTH_ASSIGN(graph::Operand * operand, operandForValue(index));
  if (operand->type == graph::OperandType::kModel)
    return fail(ErrorCode::kBadData, "The operand {} is a MODEL, it takes no bytes.", index);
  HEARTH_ASSIGN(const uint64_t needed, graph::byteSize(*operand));
  if (range.length != needed)
    return fail(ErrorCode::kBadData, "The value of operand {} has {} bytes; {} needs {}.", index,
                range.length, graph::describe(*operand), needed);
  HEARTH_ASSIGN(const memory::PoolRef pool, memory.constantPool(range));
  operand->location = {poolIndex(pool), range.offset, range.length};
  operand->lifetime = graph::Lifetime::kConstantReference;
  return {};
}

// Copies a subgraph of another model and all that it refers to, unless they are copied already.
uint32_t Model::embedSubgraph(const graph::Model& source, uint32_t index) {
  const graph::Subgraph& original = source.subgraphs[index];
  const auto known = embedded_.find(&original);
  if (known != embedded_.end()) return known->second;
  graph::Subgraph copy = original;
  for (graph::Operand& operand : copy.operands) {
    if (operand.lifetime == graph::Lifetime::kSubgraph) {
      operand.subgraphIndex = embedSubgraph(source, operand.subgraphIndex);
    } else if (operand.lifetime == graph::Lifetime::kConstantReference) {
      operand.location.pool = poolIndex(source.pools[operand.location.pool]);
    } else if (operand.lifetime == graph::Lifetime::kConstantCopy) {
      const uint8_t* bytes = source.constantData(operand);
      operand.location.offset = draft_->constantBytes.size();
      draft_->constantBytes.insert(draft_->constantBytes.end(), bytes,
                                   bytes + operand.location.length);
      draft_->constantBytes.resize((draft_->constantBytes.size() + 7) / 8 * 8);
    }
  }
  const auto mine = static_cast<uint32_t>(draft_->subgraphs.size());
  draft_->subgraphs.push_back(std::move(copy));
  embedded_.emplace(&original, mine);
  return mine;
}

Status Model::setOperandValueFromModel(int32_t index, const Model& value) {
  HEARTH_ASSIGN(graph::Operand * operand, operandForValue(index));
  if (operand->type != graph::OperandType::kModel)
    return fail(ErrorCode::kBadData, "The operand {} is {}, it takes no model.", index,
                graph::describe(*operand));
  if (&value == this || !value.isFinished())
    return fail(ErrorCode::kBadState, "The model that is referred to is not finished.");
  if (value.nesting_ + 1 >= graph::kMaxNesting)
    return fail(ErrorCode::kBadData,
                "Models lie {} deep within the one that is referred to; the "
                "limit is {}.",
                value.nesting_, graph::kMaxNesting - 2);
  nesting_ = std::max(nesting_, value.nesting_ + 1);
  const std::shared_ptr<const graph::Model>& source = value.graph();
  referenced_.push_back(source);
  hasUnknownOperation_ |= value.hasUnknownOperation();
  for (const graph::Extension& extension : source->extensions)
    addExtensionOf(extension.prefix << 16);
  // Looks the operand up again, because embedding may have moved it.
  const uint32_t subgraph = embedSubgraph(*source, 0);
  graph::Operand& target = draft_->main().operands[static_cast<size_t>(index)];
  target.lifetime = graph::Lifetime::kSubgraph;
  target.subgraphIndex = subgraph;
  return {};
}

Status Model::setPerChannelQuantization(
    int32_t index, const ANeuralNetworksSymmPerChannelQuantParams& parameters) {
  HEARTH_ASSIGN(graph::Operand * operand, operandForValue(index));
  if (operand->type != graph::OperandType::kTensorQuant8SymmPerChannel)
    return fail(ErrorCode::kBadData, "The operand {} is {}, it has no scale for each channel.",
                index, graph::describe(*operand));
  if (parameters.channelDim >= operand->dimensions.size())
    return fail(ErrorCode::kBadData, "The channel dimension {} of {} is not below its rank {}.",
                parameters.channelDim, graph::describe(*operand), operand->dimensions.size());
  const uint32_t channels = operand->dimensions[parameters.channelDim];
  if (channels == 0 || parameters.scaleCount != channels)
    return fail(ErrorCode::kBadData, "{} has {} scales for {} channels.", graph::describe(*operand),
                parameters.scaleCount, channels);
  if (parameters.scales == nullptr)
    return fail(ErrorCode::kBadData, "The pointer to the scales is null.");
  for (uint32_t i = 0; i < channels; ++i)
    if (!(parameters.scales[i] > 0.0f))
      return fail(ErrorCode::kBadData, "Scale {} of {} is {}, it must be positive.", i,
                  graph::describe(*operand), parameters.scales[i]);
  operand->perChannel.channelDim = parameters.channelDim;
  operand->perChannel.scales = std::span(parameters.scales, channels);
  return {};
}

// The data of a driver's type are whatever the extension defines. Those of hearth.tflite's
// TENSOR_INT4 are a scale for each channel: the channel dimension as uint32_t, then the scales as
// float.
Status Model::setExtensionData(int32_t index, const void* data, size_t length) {
  HEARTH_ASSIGN(graph::Operand * operand, operandForValue(index));
  if (!isExtensionType(static_cast<int32_t>(operand->type)))
    return fail(ErrorCode::kBadData, "The operand {} is {}, which is no extension's type.", index,
                graph::describe(*operand));
  if (graph::isDriverCode(operand->type)) {
    if (length == 0)
      return fail(ErrorCode::kBadData, "The extension data of operand {} have 0 bytes.", index);
    const auto* const bytes = static_cast<const uint8_t*>(data);
    operand->driverData.assign(bytes, bytes + length);
    return {};
  }
  if (operand->type != graph::OperandType::kTensorInt4)
    return fail(ErrorCode::kBadData, "{} takes no extension data.", graph::describe(*operand));
  uint32_t channelDim = 0;
  if (length < sizeof(uint32_t) || length % sizeof(float) != 0)
    return fail(ErrorCode::kBadData,
                "The extension data of {} has {} bytes, not a channel dimension and scales.",
                graph::describe(*operand), length);
  std::memcpy(&channelDim, data, sizeof channelDim);
  std::vector<float> scales(length / sizeof(float) - 1);
  if (!scales.empty())
    std::memcpy(scales.data(), static_cast<const uint8_t*>(data) + sizeof channelDim,
                scales.size() * sizeof(float));
  operand->perChannel = {channelDim, scales};
  return {};
}

Status Model::addOperation(int32_t type, std::span<const uint32_t> inputs,
                           std::span<const uint32_t> outputs) {
  HEARTH_TRY(requireOpen());
  const size_t operandCount = draft_->main().operands.size();
  HEARTH_TRY(checkIndices(inputs, operandCount, "input"));
  HEARTH_TRY(checkIndices(outputs, operandCount, "output"));
  graph::Operation operation;
  operation.type = static_cast<graph::OperationType>(type);
  operation.inputs.assign(inputs.begin(), inputs.end());
  operation.outputs.assign(outputs.begin(), outputs.end());
  const ops::OperationDefinition* definition = ops::findOperation(operation.type);
  // Only files have operators of the program: to clients of NNAPI their operation is unknown.
  const bool isKnown = definition != nullptr && operation.type != graph::OperationType::kCustom;
  if (isKnown) {
    auto valid = definition->validate(*draft_, draft_->main(), operation);
    // A wrong operation is the client's bad data, whatever code `validate` returns.
    if (!valid) return fail(ErrorCode::kBadData, "{}", valid.error().toString());
    HEARTH_TRY(ops::checkNnapiLimits(draft_->main(), operation));
  } else if (graph::isDriverCode(type) && extensionName(type)) {
    addExtensionOf(type);
  } else if ((type >> 16) == graph::kTfliteExtensionPrefix) {
    hasUnknownOperation_ = true;
  } else {
    return fail(ErrorCode::kBadData, "The {} is unknown.", graph::nameOf(operation.type));
  }
  draft_->main().operations.push_back(std::move(operation));
  return {};
}

Status Model::identifyInputsAndOutputs(std::span<const uint32_t> inputs,
                                       std::span<const uint32_t> outputs) {
  HEARTH_TRY(requireOpen());
  graph::Subgraph& main = draft_->main();
  HEARTH_TRY(checkIndices(inputs, main.operands.size(), "input"));
  HEARTH_TRY(checkIndices(outputs, main.operands.size(), "output"));
  std::vector<bool> isListed(main.operands.size());
  for (const auto list : {inputs, outputs}) {
    for (const uint32_t index : list) {
      const graph::Operand& operand = main.operands[index];
      if (operand.isConstant() || operand.lifetime == graph::Lifetime::kNoValue ||
          operand.lifetime == graph::Lifetime::kSubgraph)
        return fail(ErrorCode::kBadData, "The operand {} has a value, it is no input or output.",
                    index);
      if (isListed[index])
        return fail(ErrorCode::kBadData, "The operand {} is listed twice.", index);
      isListed[index] = true;
    }
  }
  for (graph::Operand& operand : main.operands)
    if (operand.lifetime == graph::Lifetime::kSubgraphInput ||
        operand.lifetime == graph::Lifetime::kSubgraphOutput)
      operand.lifetime = graph::Lifetime::kTemporary;
  for (const uint32_t index : inputs)
    main.operands[index].lifetime = graph::Lifetime::kSubgraphInput;
  for (const uint32_t index : outputs)
    main.operands[index].lifetime = graph::Lifetime::kSubgraphOutput;
  main.inputs.assign(inputs.begin(), inputs.end());
  main.outputs.assign(outputs.begin(), outputs.end());
  return {};
}

Status Model::relaxFloat32ToFloat16(bool allow) {
  HEARTH_TRY(requireOpen());
  draft_->relaxFloat32ToFloat16 = allow;
  return {};
}

Status Model::checkOperands() const {
  const graph::Subgraph& main = draft_->main();
  if (main.operations.empty()) return fail(ErrorCode::kBadData, "The model has no operation.");
  if (main.outputs.empty()) return fail(ErrorCode::kBadData, "The model has no output.");
  std::vector<bool> isWritten(main.operands.size());
  for (const graph::Operation& operation : main.operations)
    for (const uint32_t index : operation.outputs) isWritten[index] = true;
  for (size_t i = 0; i < main.operands.size(); ++i) {
    const graph::Operand& operand = main.operands[i];
    if (operand.lifetime == graph::Lifetime::kTemporary && !isWritten[i])
      return fail(ErrorCode::kBadData, "Operand {}, {}, has no value and no operation writes it.",
                  i, graph::describe(operand));
    if (operand.type == graph::OperandType::kTensorQuant8SymmPerChannel &&
        operand.perChannel.scales.empty() && operand.hasValue())
      return fail(ErrorCode::kBadData, "Operand {}, {}, has no scales.", i,
                  graph::describe(operand));
  }
  return {};
}

// Copies large constants from the client's buffers, valid only until finish(), into the model's own
// memory.
Status Model::moveLargeConstants() {
  uint64_t size = 0;
  std::vector<graph::Operand*> moved;
  for (graph::Operand& operand : draft_->main().operands) {
    if (operand.lifetime != graph::Lifetime::kConstantReference ||
        draft_->pools[operand.location.pool]->kind() != memory::PoolKind::kBorrowed)
      continue;
    size = aligned(size) + operand.location.length;
    moved.push_back(&operand);
  }
  if (moved.empty()) return {};
  const auto forEach = [&](auto use) {
    uint64_t offset = 0;
    for (graph::Operand* operand : moved) {
      offset = aligned(offset);
      use(*operand, offset);
      offset += operand->location.length;
    }
  };
  HEARTH_ASSIGN(const memory::PoolRef target, memory::constantPool(size, [&](uint8_t* bytes) {
                  forEach([&](const graph::Operand& operand, uint64_t offset) {
                    std::memcpy(bytes + offset, draft_->constantData(operand),
                                operand.location.length);
                  });
                }));
  forEach([](graph::Operand& operand, uint64_t offset) {
    operand.location = {kMoved, offset, operand.location.length};
  });
  // The other pools get new indices, since the borrowed ones go.
  std::vector<memory::PoolRef> pools = {target};
  std::vector<uint32_t> newIndex(draft_->pools.size(), 0);
  for (size_t i = 0; i < draft_->pools.size(); ++i) {
    if (draft_->pools[i]->kind() == memory::PoolKind::kBorrowed) continue;
    newIndex[i] = static_cast<uint32_t>(pools.size());
    pools.push_back(draft_->pools[i]);
  }
  for (graph::Subgraph& subgraph : draft_->subgraphs)
    for (graph::Operand& operand : subgraph.operands)
      if (operand.lifetime == graph::Lifetime::kConstantReference)
        operand.location.pool =
            operand.location.pool == kMoved ? 0 : newIndex[operand.location.pool];
  draft_->pools = std::move(pools);
  return {};
}

void Model::findRunPositions(const std::vector<graph::Operation>& added) {
  const graph::Subgraph& main = draft_->main();
  // Each operand has one writer, so an output identifies its operation.
  std::vector<std::optional<uint32_t>> writer(main.operands.size());
  for (uint32_t i = 0; i < main.operations.size(); ++i)
    for (const uint32_t output : main.operations[i].outputs)
      if (main.operands[output].hasValue()) writer[output] = i;
  for (const graph::Operation& operation : added) {
    std::optional<uint32_t> position;
    for (const uint32_t output : operation.outputs)
      if (writer[output]) position = writer[output];
    runPositions_.push_back(position);
  }
}

Status Model::finishGraph() {
  HEARTH_TRY(checkOperands());
  HEARTH_TRY(moveLargeConstants());
  const std::vector<graph::Operation> added = draft_->main().operations;
  HEARTH_TRY(graph::sortIntoRunOrder(draft_.get()));
  findRunPositions(added);
  if (hasUnknownOperation_) {
    graph_ = std::move(draft_);
    return {};
  }
  HEARTH_ASSIGN(std::shared_ptr<const graph::ValidatedModel> validated,
                graph::ValidatedModel::of(std::move(*draft_)));
  const auto validateOperations = validated->extensions.empty()
                                      ? ops::validateOperationsOnce
                                      : ops::validateOperationsExceptDrivers;
  if (auto valid = validateOperations(*validated); !valid)
    return fail(ErrorCode::kBadData, "{}", valid.error().toString());
  graph_ = std::move(validated);
  return {};
}

Status Model::finish() {
  HEARTH_TRY(requireOpen());
  Status status = base::caught([this] { return finishGraph(); });
  state_ = status ? State::kFinished : State::kBroken;
  draft_.reset();
  return status;
}

}  // namespace hearth::nnapi
