// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/operand_builder.h"

#include <cstring>
#include <limits>
#include <utility>

namespace hearth::tflite {

using graph::Lifetime;
using graph::OperandType;

void OperandBuilder::forgetUnsaidRank(uint32_t index) {
  if (unsaidRanks_.contains(index)) operand(index).isRankZeroTensor = false;
}

Result<uint32_t> OperandBuilder::retypedConstant(uint32_t index, OperandType type, float scale) {
  const auto key = std::make_tuple(index, type, scale);
  if (const auto found = retyped_.find(key); found != retyped_.end()) return found->second;
  graph::Operand copy = operand(index);
  HEARTH_TRY(model_.charge(copy.name.size()));
  copy.type = type;
  copy.scale = scale;
  copy.perChannel = {};
  HEARTH_ASSIGN(const uint32_t added, addOperand(std::move(copy)));
  retyped_.emplace(key, added);
  return added;
}

Result<uint32_t> OperandBuilder::addOperand(graph::Operand operand) {
  HEARTH_TRY(model_.charge(sizeof(graph::Operand) + operand.dimensions.size() * sizeof(uint32_t) +
                           operand.perChannel.scales.size() * sizeof(float)));
  result_.operands.push_back(std::move(operand));
  return static_cast<uint32_t>(result_.operands.size() - 1);
}

Result<uint32_t> OperandBuilder::temporaryLike(uint32_t index) {
  graph::Operand copy = operand(index);
  copy.lifetime = Lifetime::kTemporary;
  copy.location = {};
  copy.name.clear();
  HEARTH_ASSIGN(const uint32_t added, addOperand(std::move(copy)));
  if (unsaidRanks_.contains(index)) unsaidRanks_.insert(added);
  return added;
}

Result<uint32_t> OperandBuilder::omitted(OperandType type) {
  const auto key = std::make_tuple(std::numeric_limits<uint32_t>::max(), type, 0.0f);
  if (const auto found = retyped_.find(key); found != retyped_.end()) return found->second;
  graph::Operand operand;
  operand.type = type;
  operand.lifetime = Lifetime::kNoValue;
  HEARTH_ASSIGN(const uint32_t added, addOperand(std::move(operand)));
  retyped_.emplace(key, added);
  return added;
}

Result<uint32_t> OperandBuilder::addScalar(OperandType type, std::span<const uint8_t> bytes) {
  uint32_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  const auto key = std::make_pair(type, bits);
  if (const auto found = scalars_.find(key); found != scalars_.end()) return found->second;
  graph::Operand operand;
  operand.type = type;
  HEARTH_ASSIGN(const uint32_t added, constantTensor(std::move(operand), bytes));
  scalars_.emplace(key, added);
  return added;
}

Result<uint32_t> OperandBuilder::scalar(int32_t value) {
  return addScalar(OperandType::kInt32, {reinterpret_cast<const uint8_t*>(&value), sizeof(value)});
}

Result<uint32_t> OperandBuilder::scalar(float value) {
  return addScalar(OperandType::kFloat32,
                   {reinterpret_cast<const uint8_t*>(&value), sizeof(value)});
}

Result<uint32_t> OperandBuilder::scalar(bool value) {
  const uint8_t byte = value ? 1 : 0;
  return addScalar(OperandType::kBool, {&byte, 1});
}

Result<uint32_t> OperandBuilder::intTensor(std::span<const int32_t> values) {
  graph::Operand operand;
  operand.type = OperandType::kTensorInt32;
  operand.dimensions = {static_cast<uint32_t>(values.size())};
  return constantTensor(std::move(operand), {reinterpret_cast<const uint8_t*>(values.data()),
                                             values.size() * sizeof(int32_t)});
}

Result<uint32_t> OperandBuilder::constantTensor(graph::Operand like,
                                                std::span<const uint8_t> bytes) {
  like.lifetime = Lifetime::kConstantCopy;
  HEARTH_ASSIGN(like.location, model_.copyConstant(bytes));
  return addOperand(std::move(like));
}

Result<uint32_t> OperandBuilder::subgraphOperand(int64_t subgraph) {
  graph::Operand operand;
  operand.type = OperandType::kModel;
  operand.lifetime = Lifetime::kSubgraph;
  HEARTH_ASSIGN(operand.subgraphIndex, model_.reference(subgraph));
  return addOperand(std::move(operand));
}

Result<std::vector<int64_t>> OperandBuilder::constantInts(uint32_t index) {
  const graph::Operand& source = operand(index);
  if (!source.isConstant())
    return fail(ErrorCode::kUnsupported, "The argument {} must be a constant.",
                graph::describe(source));
  HEARTH_ASSIGN(const uint64_t count, graph::elementCount(source));
  HEARTH_TRY(model_.charge(count * sizeof(int64_t)));
  const uint8_t* data = model_.model().constantData(source);
  const auto read = [&]<typename T>(T) {
    std::vector<int64_t> values(count);
    for (size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, data + i * sizeof(T), sizeof(T));
      values[i] = value;
    }
    return values;
  };
  switch (source.type) {
    case OperandType::kTensorInt32:
      return read(int32_t{});
    case OperandType::kTensorInt64:
      return read(int64_t{});
    case OperandType::kTensorInt16:
      return read(int16_t{});
    case OperandType::kTensorQuant8AsymmSigned:
      return read(int8_t{});
    case OperandType::kTensorQuant8Asymm:
      return read(uint8_t{});
    default:
      return fail(ErrorCode::kBadData, "The argument {} must be of an integer type.",
                  graph::describe(source));
  }
}

}  // namespace hearth::tflite
