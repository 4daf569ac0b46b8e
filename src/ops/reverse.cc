// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

// The dimensions to reverse. NNAPI names one; TFLite may name several.
Result<std::vector<bool>> parseAxes(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  std::vector<bool> reversed(context.inputs[0].rank(), false);
  HEARTH_ASSIGN(const std::vector<int64_t> axes, context.intVector(1));
  for (const int64_t value : axes) {
    HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, reversed.size()));
    if (reversed[axis])
      return fail(ErrorCode::kBadData, "{} names the dimension {} twice.", context.describe(),
                  axis);
    reversed[axis] = true;
  }
  return reversed;
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  if (context.inputs[1].data != nullptr) HEARTH_TRY(parseAxes(context));
  return context.setOutputDimensions(0, context.inputs[0].dimensions);
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const std::vector<bool> reversed, parseAxes(context));
  const Tensor& input = context.inputs[0];
  if (input.elementCount() == 0) return {};
  const std::vector<int64_t> strides = rowMajorStrides(input.dimensions);
  std::vector<CopyDimension> loops;
  int64_t start = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    loops.push_back({input.dimensions[i], reversed[i] ? -strides[i] : strides[i], strides[i]});
    if (reversed[i]) start += (int64_t{input.dimensions[i]} - 1) * strides[i];
  }
  const size_t element = graph::elementSize(input.type());
  copyStrided(element, std::move(loops), input.as<uint8_t>() + static_cast<size_t>(start) * element,
              context.outputs[0].data, context.threadPool);
  return {};
}

}  // namespace

const OperationDefinition kReverseOperation = {OperationType::kReverse, validateMove, prepare,
                                               execute};

}  // namespace hearth::ops
