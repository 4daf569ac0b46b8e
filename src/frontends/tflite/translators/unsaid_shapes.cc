// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/unsaid_shapes.h"

#include <algorithm>
#include <span>

#include "ops/operation.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;

// More than any computation of a shape needs.
constexpr uint64_t kMostElements = 64;

bool isShapeArithmetic(OperationType type) {
  switch (type) {
    case OperationType::kAdd:
    case OperationType::kCast:
    case OperationType::kCeil:
    case OperationType::kConcatenation:
    case OperationType::kDiv:
    case OperationType::kExpandDims:
    case OperationType::kFloor:
    case OperationType::kFloorDiv:
    case OperationType::kGather:
    case OperationType::kMaximum:
    case OperationType::kMinimum:
    case OperationType::kMul:
    case OperationType::kPack:
    case OperationType::kReduceProd:
    case OperationType::kReshape:
    case OperationType::kSlice:
    case OperationType::kSqueeze:
    case OperationType::kStridedSlice:
    case OperationType::kSub:
    case OperationType::kTruncatedDiv:
      return true;
    default:
      return false;
  }
}

bool isNumber(OperandType type) {
  return type == OperandType::kTensorInt32 || type == OperandType::kTensorInt64 ||
         type == OperandType::kTensorFloat32 || type == OperandType::kInt32;
}

bool isFew(const ops::Tensor& tensor) {
  return isNumber(tensor.type()) &&
         std::ranges::all_of(tensor.dimensions,
                             [](uint32_t size) { return size <= kMostElements; }) &&
         tensor.elementCount() <= kMostElements;
}

}  // namespace

void setUnsaidShapes(const graph::Model& model, graph::Subgraph* subgraph,
                     const graph::Operation& operation, const std::set<uint32_t>& unsaid) {
  std::vector<uint32_t> open;
  std::ranges::copy_if(operation.outputs, std::back_inserter(open), [&](uint32_t index) {
    return unsaid.contains(index) && subgraph->operands[index].isRankZeroTensor;
  });
  const ops::OperationDefinition* definition = ops::findOperation(operation.type);
  // The results of IF and WHILE are what their subgraphs say.
  if (open.empty() || definition == nullptr || operation.type == OperationType::kIf ||
      operation.type == OperationType::kWhile)
    return;
  const auto setKnown = [&](bool isRankZero) {
    for (const uint32_t index : open) subgraph->operands[index].isRankZeroTensor = isRankZero;
  };
  for (const uint32_t index : operation.inputs) {
    const graph::Operand& input = subgraph->operands[index];
    if (input.hasValue() && !graph::isScalar(input.type) && !graph::isFullySpecified(input))
      return setKnown(false);
  }
  for (const bool isRankZero : {true, false}) {
    setKnown(isRankZero);
    if (!definition->validate(model, *subgraph, operation)) continue;
    ops::OperationContext context = ops::makeContext(model, *subgraph, operation);
    const Status status = definition->prepare(context);
    if (!status) {
      if (ops::isNeedsRuntimeValue(status.error())) return setKnown(false);
      continue;
    }
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      if (std::ranges::find(open, operation.outputs[i]) == open.end()) continue;
      graph::Operand& output = subgraph->operands[operation.outputs[i]];
      output.dimensions = context.outputs[i].dimensions;
      output.isRankZeroTensor = output.dimensions.empty();
    }
    return;
  }
  setKnown(true);
}

std::optional<std::vector<std::vector<uint8_t>>> computedShape(const graph::Model& model,
                                                               const graph::Subgraph& subgraph,
                                                               const graph::Operation& operation) {
  const ops::OperationDefinition* definition = ops::findOperation(operation.type);
  if (definition == nullptr || !isShapeArithmetic(operation.type)) return std::nullopt;
  ops::OperationContext context = ops::makeContext(model, subgraph, operation);
  for (const ops::Tensor& input : context.inputs)
    if (input.isPresent && (input.data == nullptr || !isFew(input))) return std::nullopt;
  for (const ops::Tensor& output : context.outputs)
    if (!isNumber(output.type())) return std::nullopt;
  if (!definition->validate(model, subgraph, operation) || !definition->prepare(context))
    return std::nullopt;
  std::vector<std::vector<uint8_t>> results;
  for (ops::Tensor& output : context.outputs) {
    // What a file says must be all that is known of a constant.
    const bool isSaid = graph::isFullySpecified(*output.operand);
    if (!isSaid || !isFew(output) || output.elementCount() == 0) return std::nullopt;
    results.emplace_back(output.elementCount() * graph::elementSize(output.type()));
  }
  for (size_t i = 0; i < results.size(); ++i) context.outputs[i].data = results[i].data();
  if (!definition->execute(context)) return std::nullopt;
  return results;
}

}  // namespace hearth::tflite
