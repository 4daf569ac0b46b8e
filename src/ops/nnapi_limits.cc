// SPDX-License-Identifier: Apache-2.0
#include "ops/nnapi_limits.h"

namespace hearth::ops {
namespace {

using graph::OperationType;

Status checkRank(const graph::Operation& operation, const graph::Operand& operand, size_t maximum) {
  if (operand.dimensions.size() <= maximum) return {};
  return fail(ErrorCode::kBadData, "{} takes tensors up to rank {}, not {}.",
              graph::nameOf(operation.type), maximum, graph::describe(operand));
}

Status checkScalar(const graph::Operation& operation, const graph::Operand& operand) {
  if (graph::isScalar(operand.type)) return {};
  return fail(ErrorCode::kBadData, "{} takes a scalar, not {}.", graph::nameOf(operation.type),
              graph::describe(operand));
}

// `operand` is a list with an element for each dimension of `tensor`, both as far as known.
Status checkLength(const graph::Operation& operation, const graph::Operand& operand,
                   const graph::Operand& tensor) {
  if (operand.dimensions.size() != 1 || operand.dimensions[0] == 0 || tensor.dimensions.empty() ||
      operand.dimensions[0] == tensor.dimensions.size())
    return {};
  return fail(ErrorCode::kBadData, "{} takes an element for each dimension of {}, not {}.",
              graph::nameOf(operation.type), graph::describe(tensor), graph::describe(operand));
}

}  // namespace

Status checkNnapiLimits(const graph::Subgraph& subgraph, const graph::Operation& operation) {
  const auto input = [&](size_t index) -> const graph::Operand& {
    return subgraph.operands[operation.inputs[index]];
  };
  switch (operation.type) {
    case OperationType::kConcatenation:
      for (size_t i = 0; i + 1 < operation.inputs.size(); ++i)
        HEARTH_TRY(checkRank(operation, input(i), 4));
      return {};
    case OperationType::kGather:
      if (operation.inputs.size() <= 3) return {};
      return fail(ErrorCode::kBadData, "GATHER takes 3 inputs, not {}.", operation.inputs.size());
    case OperationType::kResizeBilinear:
    case OperationType::kResizeNearestNeighbor:
      HEARTH_TRY(checkScalar(operation, input(1)));
      return checkScalar(operation, input(2));
    case OperationType::kStridedSlice:
      for (size_t i = 1; i < 4; ++i) HEARTH_TRY(checkLength(operation, input(i), input(0)));
      return {};
    case OperationType::kSvdf:
      if (!graph::isQuantized(input(0).type)) return {};
      return fail(ErrorCode::kBadData, "SVDF takes floating-point tensors, not {}.",
                  graph::describe(input(0)));
    case OperationType::kTopkV2:
      return checkScalar(operation, input(1));
    default:
      return {};
  }
}

}  // namespace hearth::ops
