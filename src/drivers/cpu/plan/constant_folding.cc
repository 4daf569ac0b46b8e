// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/constant_folding.h"

#include <algorithm>
#include <cstdint>

#include "drivers/cpu/plan/plan_builder.h"
#include "ops/operation.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;
using graph::OperationType;

// Results that are computed before anything reads them, and the constants that they are computed
// from: every start reads these.
constexpr uint64_t kMostComputedBytes = uint64_t{1} << 20;
constexpr uint64_t kMostReadBytes = uint64_t{4} << 20;
// Smaller integers may be shapes, which the preparation of later operations reads.
constexpr uint64_t kMostShapeBytes = uint64_t{4} << 10;

enum class Folding {
  kNone,
  kView,     // the output has the input's bytes
  kConvert,  // never fails
  kCompute,  // may fail for some values
};

Folding foldingOf(OperationType type) {
  switch (type) {
    case OperationType::kReshape:
    case OperationType::kSqueeze:
    case OperationType::kExpandDims:
      return Folding::kView;
    case OperationType::kCast:
    case OperationType::kDequantize:
    case OperationType::kTranspose:
      return Folding::kConvert;
    case OperationType::kAbs:
    case OperationType::kAdd:
    case OperationType::kBroadcastArgs:
    case OperationType::kBroadcastTo:
    case OperationType::kCeil:
    case OperationType::kConcatenation:
    case OperationType::kDiv:
    case OperationType::kEqual:
    case OperationType::kExp:
    case OperationType::kFill:
    case OperationType::kFloor:
    case OperationType::kFloorDiv:
    case OperationType::kFloorMod:
    case OperationType::kGather:
    case OperationType::kGreater:
    case OperationType::kGreaterEqual:
    case OperationType::kLess:
    case OperationType::kLessEqual:
    case OperationType::kLogicalAnd:
    case OperationType::kLogicalNot:
    case OperationType::kLogicalOr:
    case OperationType::kMaximum:
    case OperationType::kMinimum:
    case OperationType::kMul:
    case OperationType::kNeg:
    case OperationType::kNotEqual:
    case OperationType::kPack:
    case OperationType::kPad:
    case OperationType::kPow:
    case OperationType::kQuantize:
    case OperationType::kRange:
    case OperationType::kReduceMax:
    case OperationType::kReduceMin:
    case OperationType::kReduceProd:
    case OperationType::kReduceSum:
    case OperationType::kRsqrt:
    case OperationType::kSelect:
    case OperationType::kSelectV2:
    case OperationType::kSlice:
    case OperationType::kSparseToDense:
    case OperationType::kSqrt:
    case OperationType::kStridedSlice:
    case OperationType::kSub:
    case OperationType::kTile:
      return Folding::kCompute;
    default:
      return Folding::kNone;
  }
}

// Whether the operation packs this operand, or looks up rows of what it is converted from.
bool packs(const graph::Operation& reader, uint32_t operand) {
  switch (reader.type) {
    case OperationType::kConv2d:
    case OperationType::kGroupedConv2d:
    case OperationType::kDepthwiseConv2d:
    case OperationType::kFullyConnected:
    case OperationType::kTransposeConv2d:
      return reader.inputs[0] != operand &&
             (reader.inputs[1] == operand || reader.inputs[2] == operand);
    case OperationType::kEmbeddingLookup:
      return reader.inputs[1] == operand;
    default:
      return false;
  }
}

bool isWholeBytes(OperandType type) {
  return type != OperandType::kTensorInt4 && graph::elementSize(type) > 0;
}

bool isInteger(OperandType type) {
  return type == OperandType::kTensorInt32 || type == OperandType::kTensorInt64 ||
         type == OperandType::kTensorBool8;
}

}  // namespace

bool foldConstants(PlanBuilder* builder) {
  const ops::OperationContext& context = builder->context();
  const graph::Operation& operation = *context.operation;
  const Folding folding = foldingOf(operation.type);
  if (folding == Folding::kNone || operation.outputs.size() != 1) return false;
  const uint32_t output = operation.outputs[0];
  const std::vector<uint32_t>& readers = builder->consumers(output);
  PlanConstants& constants = builder->constants();
  const bool isConstant =
      !operation.inputs.empty() && std::ranges::all_of(operation.inputs, [&](uint32_t input) {
        return !builder->operand(input).hasValue() || constants.isWeight(input);
      });
  if (!isConstant || readers.empty() || builder->isGraphOutput(output) ||
      !isWholeBytes(builder->operand(output).type))
    return false;
  const uint64_t bytes = tensorBytes(builder->tensor(output));
  if (bytes == 0) return false;
  if (folding == Folding::kView) {
    constants.setView(output, operation.inputs[0]);
    return true;
  }
  const bool isShape = isInteger(builder->operand(output).type) && bytes <= kMostShapeBytes;
  if (folding == Folding::kCompute || isShape) {
    uint64_t readBytes = 0;
    for (const ops::Tensor& input : context.inputs)
      if (input.isPresent) readBytes += tensorBytes(input);
    return bytes <= kMostComputedBytes && readBytes <= kMostReadBytes &&
           constants.takeRoom(bytes) && constants.setComputed(output, context);
  }
  const bool isPacked = std::ranges::all_of(readers, [&](uint32_t reader) {
    return !builder->isReferenceOnly(reader) && packs(builder->operation(reader), output);
  });
  if (!isPacked && !constants.takeRoom(bytes)) return false;
  constants.setConverted(output, context);
  return true;
}

}  // namespace hearth::cpu
