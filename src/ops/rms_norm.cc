// SPDX-License-Identifier: Apache-2.0
// RMS_NORM of the extension: x / sqrt(mean(x^2) + epsilon) * scale along the last dimension.
// Inputs: data, scale (as many elements as the last dimension; may be omitted), epsilon.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/registry.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(validateElementwise(signature, kFloatTensors));
  HEARTH_TRY(signature.inputRank(0, 1, kMaximumRank));
  HEARTH_TRY(signature.optionalInputTypeLike(1, 0));
  return signature.floatScalar(2, 0);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  HEARTH_TRY(prepareElementwise(context));
  if (context.hasInput(1) &&
      context.inputs[1].elementCount() != context.inputs[0].dimensions.back())
    return fail(ErrorCode::kBadData, "The scale of {} is {}, its data are {}.", context.describe(),
                graph::describeDimensions(context.inputs[1].dimensions),
                graph::describeDimensions(context.inputs[0].dimensions));
  return {};
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const float epsilon, floatScalar(context, 2));
  const RealInput input(context.inputs[0]);
  std::vector<float> scale(context.inputs[0].dimensions.back(), 1.0f);
  if (context.hasInput(1)) {
    const RealInput given(context.inputs[1]);
    scale.assign(given.begin(), given.end());
  }
  RealOutput output(context.outputs[0]);
  const size_t size = scale.size();
  for (size_t first = 0; first < input.size(); first += size) {
    double sum = 0.0;
    for (size_t i = 0; i < size; ++i) sum += double{input[first + i]} * input[first + i];
    const double factor = 1.0 / std::sqrt(sum / static_cast<double>(size) + epsilon);
    for (size_t i = 0; i < size; ++i)
      output[first + i] = static_cast<float>(input[first + i] * factor) * scale[i];
  }
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kRmsNormOperation = {OperationType::kRmsNorm, validate, prepare, execute};

}  // namespace hearth::ops
