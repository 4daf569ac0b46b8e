// SPDX-License-Identifier: Apache-2.0
// SOFTMAX and LOG_SOFTMAX. Inputs: data, beta, axis (optional for SOFTMAX).
#include "ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/axis_rows.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/softmax_table.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

Status validateArguments(const Signature& signature, TypeSet types) {
  HEARTH_TRY(signature.inputType(0, types));
  HEARTH_TRY(signature.floatScalar(1, 0));
  HEARTH_TRY(signature.optionalInputType(2, OperandType::kInt32));
  HEARTH_TRY(signature.inputRank(0, 1, kMaximumRank));
  return signature.outputTypeLike(0, 0);
}

Status validateSoftmax(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 3, 1));
  HEARTH_TRY(validateArguments(signature,
                               kFloatTensors | kQuant8Tensors | OperandType::kTensorQuant16Symm));
  if (signature.isInputOfType(0, OperandType::kTensorQuant16Symm))
    return signature.outputQuantization(0, 1.0f / 32768, 0);
  if (signature.isInputOfType(0, OperandType::kTensorQuant8Asymm))
    return signature.outputQuantization(0, 1.0f / 256, 0);
  if (signature.isInputOfType(0, OperandType::kTensorQuant8AsymmSigned))
    return signature.outputQuantization(0, 1.0f / 256, -128);
  return {};
}

// 8-bit types are an addition for .tflite files.
Status validateLogSoftmax(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 3, 1));
  return validateArguments(signature, kFloatTensors | kQuant8Tensors);
}

void executeSymmetric16(const OperationContext& context, const SoftmaxParameters& p) {
  const Tensor& input = context.inputs[0];
  const int16_t* source = input.as<int16_t>();
  int16_t* target = context.outputs[0].as<int16_t>();
  const SoftmaxTable table(input.operand->scale, p.beta);
  const AxisBlocks blocks(input.dimensions, p.axis);
  if (blocks.inner == 1) {
    threads::forRanges(context.threadPool, blocks.outer,
                       threads::grainOf(blocks.size * sizeof(int16_t)),
                       [&](uint64_t begin, uint64_t end) {
                         for (uint64_t row = begin; row < end; ++row)
                           table.apply({source + row * blocks.size, blocks.size},
                                       {target + row * blocks.size, blocks.size});
                       });
    return;
  }
  std::vector<int16_t> values(blocks.size);
  forEachAxisRow(input.dimensions, p.axis, [&](const AxisRow& row) {
    for (size_t i = 0; i < row.size; ++i) values[i] = source[row.index(i)];
    table.apply(values, values);
    for (size_t i = 0; i < row.size; ++i) target[row.index(i)] = values[i];
  });
}

template <bool isLog>
Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const SoftmaxParameters p, parseSoftmax(context));
  if (context.inputs[0].type() == OperandType::kTensorQuant16Symm) {
    executeSymmetric16(context, p);
    return {};
  }
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  forEachAxisRow(context.inputs[0].dimensions, p.axis, [&](const AxisRow& row) {
    float highest = -std::numeric_limits<float>::infinity();
    for (size_t i = 0; i < row.size; ++i) highest = std::max(highest, input[row.index(i)]);
    double sum = 0.0;
    for (size_t i = 0; i < row.size; ++i)
      sum += std::exp(static_cast<double>(input[row.index(i)] - highest) * p.beta);
    for (size_t i = 0; i < row.size; ++i) {
      const double exponent = static_cast<double>(input[row.index(i)] - highest) * p.beta;
      output[row.index(i)] =
          static_cast<float>(isLog ? exponent - std::log(sum) : std::exp(exponent) / sum);
    }
  });
  output.store();
  return {};
}

}  // namespace

Result<SoftmaxParameters> parseSoftmax(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  SoftmaxParameters p;
  HEARTH_ASSIGN(p.beta, floatScalar(context, 1));
  if (!std::isfinite(p.beta) || p.beta <= 0.0f)
    return fail(ErrorCode::kBadData, "The beta (input 1) of {} is {}, it must be positive.",
                context.describe(), p.beta);
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(2, -1));
  HEARTH_ASSIGN(p.axis, resolveAxis(context, axis, context.inputs[0].rank()));
  return p;
}

const OperationDefinition kLogSoftmaxOperation = {OperationType::kLogSoftmax, validateLogSoftmax,
                                                  prepareLikeInput<parseSoftmax>, execute<true>};
const OperationDefinition kSoftmaxOperation = {OperationType::kSoftmax, validateSoftmax,
                                               prepareLikeInput<parseSoftmax>, execute<false>};

}  // namespace hearth::ops
