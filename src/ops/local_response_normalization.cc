// SPDX-License-Identifier: Apache-2.0
// LOCAL_RESPONSE_NORMALIZATION: multiplies each element by (bias + alpha * s)^-beta, where s is the
// sum of squares of the elements up to `radius` away along an axis. Inputs: data, radius, bias,
// alpha, beta, axis (optional, default: the last).
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/axis_rows.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

struct Parameters {
  size_t radius = 0;
  float bias = 0.0f, alpha = 0.0f, beta = 0.0f;
  size_t axis = 0;
};

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(5, 6, 1));
  HEARTH_TRY(signature.inputType(0, kFloatTensors));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  for (size_t i = 2; i < 5; ++i) HEARTH_TRY(signature.floatScalar(i, 0));
  HEARTH_TRY(signature.optionalInputType(5, OperandType::kInt32));
  HEARTH_TRY(signature.inputRank(0, 1, kMaximumRank));
  return signature.outputTypeLike(0, 0);
}

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 5, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  Parameters p;
  HEARTH_ASSIGN(const int32_t radius, context.scalar<int32_t>(1));
  if (radius < 0)
    return fail(ErrorCode::kBadData, "The radius (input 1) of {} is {}, it must not be negative.",
                context.describe(), radius);
  p.radius = static_cast<size_t>(radius);
  HEARTH_ASSIGN(p.bias, floatScalar(context, 2));
  HEARTH_ASSIGN(p.alpha, floatScalar(context, 3));
  HEARTH_ASSIGN(p.beta, floatScalar(context, 4));
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(5, -1));
  HEARTH_ASSIGN(p.axis, resolveAxis(context, axis, context.inputs[0].rank()));
  return p;
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters p, parse(context));
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  std::vector<double> prefix;  // sums of squares of the first i elements: any radius costs the same
  forEachAxisRow(context.inputs[0].dimensions, p.axis, [&](const AxisRow& row) {
    prefix.assign(row.size + 1, 0.0);
    for (size_t i = 0; i < row.size; ++i) {
      const double value = input[row.index(i)];
      prefix[i + 1] = prefix[i] + value * value;
    }
    for (size_t i = 0; i < row.size; ++i) {
      const size_t begin = i - std::min(i, p.radius);
      const size_t end = std::min(row.size, i + p.radius + 1);
      const double base = p.bias + p.alpha * (prefix[end] - prefix[begin]);
      output[row.index(i)] = static_cast<float>(input[row.index(i)] * std::pow(base, -p.beta));
    }
  });
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kLocalResponseNormalizationOperation = {
    OperationType::kLocalResponseNormalization, validate, prepareLikeInput<parse>, execute};

}  // namespace hearth::ops
