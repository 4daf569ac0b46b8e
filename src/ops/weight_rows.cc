// SPDX-License-Identifier: Apache-2.0
#include "ops/weight_rows.h"

#include <algorithm>

#include "ops/half.h"
#include "ops/int4.h"

namespace hearth::ops {
namespace {

size_t rowSizeOf(const Tensor& weights) {
  size_t size = 1;
  for (size_t i = 1; i < weights.rank(); ++i) size *= weights.dimensions[i];
  return size;
}

}  // namespace

Status validateWeightScales(const Signature& signature, size_t weights, size_t blockScales) {
  const graph::Operand& operand = signature.input(weights);
  if (operand.type != OperandType::kTensorInt4) {
    if (!signature.hasInput(blockScales)) return {};
    return fail(ErrorCode::kBadData,
                "Input {} of {} is given, but its weights {} are not TENSOR_INT4.", blockScales,
                signature.describe(), graph::describe(operand));
  }
  if (signature.hasInput(blockScales)) {
    HEARTH_TRY(signature.inputType(blockScales, kFloatTensors));
    return signature.inputRank(blockScales, 2, 2);
  }
  if (operand.perChannel.scales.empty() && operand.scale == 0.0f)
    return fail(ErrorCode::kBadData, "The weights {} of {} have no scale.",
                graph::describe(operand), signature.describe());
  return {};
}

Status checkBlockScales(const OperationContext& context, size_t weights, size_t blockScales) {
  if (!context.hasInput(blockScales)) return {};
  HEARTH_TRY(requireRank(context, blockScales, 2, 2));
  const Tensor& values = context.inputs[weights];
  const Dimensions& shape = context.inputs[blockScales].dimensions;
  const size_t rowSize = rowSizeOf(values);
  if (shape[0] != values.dimensions[0] || shape[1] == 0 || rowSize == 0 || rowSize % shape[1] != 0)
    return fail(ErrorCode::kBadData, "The block scales {} of {} do not fit its weights {}.",
                graph::describeDimensions(shape), context.describe(),
                graph::describeDimensions(values.dimensions));
  return {};
}

WeightRows::WeightRows(const OperationContext& context, size_t weights, size_t blockScales)
    : weights_(context.inputs[weights]), rowSize_(rowSizeOf(weights_)) {
  if (!context.hasInput(blockScales)) return;
  blockScales_ = &context.inputs[blockScales];
  blockSize_ = rowSize_ / blockScales_->dimensions[1];
}

float WeightRows::blockScale(uint64_t index) const {
  if (blockScales_->type() == OperandType::kTensorFloat16)
    return static_cast<float>(blockScales_->as<Half>()[index]);
  return blockScales_->as<float>()[index];
}

void WeightRows::read(uint64_t row, float* target) const {
  const uint64_t first = row * rowSize_;
  switch (weights_.type()) {
    case OperandType::kTensorFloat32:
      std::copy_n(weights_.as<float>() + first, rowSize_, target);
      return;
    case OperandType::kTensorFloat16:
      widenHalves(weights_.as<Half>() + first, rowSize_, target);
      return;
    default:
      break;
  }
  const graph::Operand& operand = *weights_.operand;
  const float scale =
      operand.perChannel.scales.empty() ? operand.scale : operand.perChannel.scales[row];
  if (weights_.type() != OperandType::kTensorInt4) {
    const int8_t* source = weights_.as<int8_t>() + first;
    for (size_t i = 0; i < rowSize_; ++i)
      target[i] = scale * static_cast<float>(source[i] - operand.zeroPoint);
    return;
  }
  const uint8_t* pairs = weights_.as<uint8_t>();
  const size_t run = blockSize_ == 0 ? rowSize_ : blockSize_;
  for (size_t i = 0; i < rowSize_; i += run) {
    const float factor = blockSize_ == 0 ? scale : blockScale((first + i) / blockSize_);
    for (size_t j = i; j < i + run; ++j)
      target[j] = factor * static_cast<float>(int4At(pairs, first + j));
  }
}

}  // namespace hearth::ops
