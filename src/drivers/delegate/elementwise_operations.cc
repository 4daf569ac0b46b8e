// SPDX-License-Identifier: Apache-2.0
// Arithmetic on elements, activations, reductions, normalisation, products and changes of types.
#include <algorithm>

#include "drivers/delegate/operation_writer.h"
#include "ops/activation.h"
#include "ops/batch_matmul.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "ops/validation.h"
#include "tflite_abi/builtin_params.h"

namespace hearth::drivers::delegate {
namespace {

using ops::OperationType;
using tflite_abi::Builtin;

// All inputs are tensors, and there are no parameters.
template <Builtin kCode, size_t kInputs>
Status writePlain(OperationWriter& writer) {
  std::vector<int32_t> inputs;
  for (size_t i = 0; i < kInputs; ++i) {
    HEARTH_ASSIGN(const int32_t input, writer.input(i));
    inputs.push_back(input);
  }
  HEARTH_ASSIGN(const int32_t output, writer.output());
  return writer.emit(kCode, std::move(inputs), {output});
}

// Two tensors and an activation.
template <Builtin kCode>
Status writeBinary(OperationWriter& writer) {
  HEARTH_ASSIGN(const int32_t left, writer.input(0));
  HEARTH_ASSIGN(const int32_t right, writer.input(1));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  HEARTH_ASSIGN(const ops::FusedActivation activation, ops::parseActivation(writer.context(), 2));
  return writer.emit(kCode, {left, right}, {output},
                     tflite_abi::ActivationParams{static_cast<int32_t>(activation)});
}

// Operations along an axis, which TensorFlow Lite computes along the last one.
Status requireLastAxis(const OperationWriter& writer, size_t axis) {
  if (axis + 1 == writer.inputTensor(0).rank()) return {};
  return fail(ErrorCode::kUnsupported,
              "TensorFlow Lite's {} computes along the last dimension, not along dimension {}.",
              writer.context().describe(), axis);
}

Result<size_t> axisArgument(const OperationWriter& writer, size_t index) {
  HEARTH_ASSIGN(const int32_t axis, writer.scalar<int32_t>(index, -1));
  return ops::resolveAxis(writer.context(), axis, writer.inputTensor(0).rank());
}

Status writeSoftmax(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::SoftmaxParameters p, ops::parseSoftmax(writer.context()));
  HEARTH_TRY(requireLastAxis(writer, p.axis));
  HEARTH_ASSIGN(const int32_t input, writer.input(0));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  return writer.emit(Builtin::kSoftmax, {input}, {output}, tflite_abi::FloatParams{p.beta});
}

Status writeLogSoftmax(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::SoftmaxParameters p, ops::parseSoftmax(writer.context()));
  HEARTH_TRY(requireLastAxis(writer, p.axis));
  if (p.beta != 1.0f)
    return fail(ErrorCode::kUnsupported, "TensorFlow Lite's LOG_SOFTMAX has no beta, here {}.",
                p.beta);
  return writePlain<Builtin::kLogSoftmax, 1>(writer);
}

Status writeL2Normalization(OperationWriter& writer) {
  HEARTH_ASSIGN(const size_t axis, axisArgument(writer, 1));
  HEARTH_TRY(requireLastAxis(writer, axis));
  HEARTH_ASSIGN(const int32_t input, writer.input(0));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  return writer.emit(Builtin::kL2Normalization, {input}, {output}, tflite_abi::ActivationParams{0});
}

Status writeLocalResponseNormalization(OperationWriter& writer) {
  HEARTH_ASSIGN(const size_t axis, axisArgument(writer, 5));
  HEARTH_TRY(requireLastAxis(writer, axis));
  tflite_abi::LocalResponseNormalizationParams params{};
  HEARTH_ASSIGN(params.radius, writer.scalar<int32_t>(1, 0));
  HEARTH_ASSIGN(params.bias, ops::floatScalar(writer.context(), 2));
  HEARTH_ASSIGN(params.alpha, ops::floatScalar(writer.context(), 3));
  HEARTH_ASSIGN(params.beta, ops::floatScalar(writer.context(), 4));
  HEARTH_ASSIGN(const int32_t input, writer.input(0));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  return writer.emit(Builtin::kLocalResponseNormalization, {input}, {output}, params);
}

template <Builtin kCode>
Status writeReduction(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::ReduceParameters p, ops::parseReduce(writer.context()));
  std::vector<int32_t> axes;
  for (size_t i = 0; i < p.isReduced.size(); ++i)
    if (p.isReduced[i]) axes.push_back(static_cast<int32_t>(i));
  HEARTH_ASSIGN(const int32_t input, writer.input(0));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  return writer.emit(kCode, {input, writer.tensors().integers(axes)}, {output},
                     tflite_abi::ReducerParams{p.keepDimensions});
}

template <Builtin kCode>
Status writeArgument(OperationWriter& writer) {
  HEARTH_ASSIGN(const size_t axis, axisArgument(writer, 1));
  HEARTH_ASSIGN(const int32_t input, writer.input(0));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  const auto number = static_cast<int32_t>(axis);
  return writer.emit(kCode, {input, writer.tensors().integers({&number, 1}, true)}, {output},
                     tflite_abi::IntParams{writer.tensors().at(output).type});
}

Status writeBatchMatmul(OperationWriter& writer) {
  HEARTH_ASSIGN(const bool isLeftTransposed, writer.scalar<bool>(2, false));
  HEARTH_ASSIGN(const bool isRightTransposed, writer.scalar<bool>(3, false));
  HEARTH_ASSIGN(const int32_t left, writer.input(0));
  HEARTH_ASSIGN(const int32_t right, writer.input(1));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  return writer.emit(Builtin::kBatchMatmul, {left, right}, {output},
                     tflite_abi::BatchMatMulParams{isLeftTransposed, isRightTransposed, false});
}

Status writeCast(OperationWriter& writer) {
  HEARTH_ASSIGN(const int32_t input, writer.input(0));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  return writer.emit(
      Builtin::kCast, {input}, {output},
      tflite_abi::CastParams{writer.tensors().at(input).type, writer.tensors().at(output).type});
}

Status writeGelu(OperationWriter& writer) {
  HEARTH_ASSIGN(const bool isApproximate, writer.scalar<bool>(1, false));
  HEARTH_ASSIGN(const int32_t input, writer.input(0));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  return writer.emit(Builtin::kGelu, {input}, {output}, tflite_abi::GeluParams{isApproximate});
}

Status writeElu(OperationWriter& writer) {
  HEARTH_ASSIGN(const float alpha, ops::floatScalar(writer.context(), 1));
  if (alpha != 1.0f)
    return fail(ErrorCode::kUnsupported, "TensorFlow Lite's ELU has the alpha 1, not {}.", alpha);
  return writePlain<Builtin::kElu, 1>(writer);
}

Status writeCumsum(OperationWriter& writer) {
  HEARTH_ASSIGN(const size_t axis, axisArgument(writer, 1));
  HEARTH_ASSIGN(const bool isExclusive, writer.scalar<bool>(2, false));
  HEARTH_ASSIGN(const bool isReverse, writer.scalar<bool>(3, false));
  HEARTH_ASSIGN(const int32_t input, writer.input(0));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  const auto number = static_cast<int32_t>(axis);
  return writer.emit(Builtin::kCumsum, {input, writer.tensors().integers({&number, 1}, true)},
                     {output}, tflite_abi::CumsumParams{isExclusive, isReverse});
}

constexpr OperationEntry kElementwiseOperations[] = {
    {OperationType::kAdd, writeBinary<Builtin::kAdd>},
    {OperationType::kSub, writeBinary<Builtin::kSub>},
    {OperationType::kMul, writeBinary<Builtin::kMul>},
    {OperationType::kDiv, writeBinary<Builtin::kDiv>},
    {OperationType::kMaximum, writePlain<Builtin::kMaximum, 2>},
    {OperationType::kMinimum, writePlain<Builtin::kMinimum, 2>},
    {OperationType::kPow, writePlain<Builtin::kPow, 2>},
    {OperationType::kPrelu, writePlain<Builtin::kPrelu, 2>},
    {OperationType::kSquaredDifference, writePlain<Builtin::kSquaredDifference, 2>},
    {OperationType::kFloorDiv, writePlain<Builtin::kFloorDiv, 2>},
    {OperationType::kFloorMod, writePlain<Builtin::kFloorMod, 2>},
    {OperationType::kAtan2, writePlain<Builtin::kAtan2, 2>},
    {OperationType::kEqual, writePlain<Builtin::kEqual, 2>},
    {OperationType::kNotEqual, writePlain<Builtin::kNotEqual, 2>},
    {OperationType::kLess, writePlain<Builtin::kLess, 2>},
    {OperationType::kLessEqual, writePlain<Builtin::kLessEqual, 2>},
    {OperationType::kGreater, writePlain<Builtin::kGreater, 2>},
    {OperationType::kGreaterEqual, writePlain<Builtin::kGreaterEqual, 2>},
    {OperationType::kLogicalAnd, writePlain<Builtin::kLogicalAnd, 2>},
    {OperationType::kLogicalOr, writePlain<Builtin::kLogicalOr, 2>},
    {OperationType::kLogicalNot, writePlain<Builtin::kLogicalNot, 1>},
    {OperationType::kSelect, writePlain<Builtin::kSelect, 3>},
    {OperationType::kSelectV2, writePlain<Builtin::kSelectV2, 3>},
    {OperationType::kRelu, writePlain<Builtin::kRelu, 1>},
    {OperationType::kRelu1, writePlain<Builtin::kReluN1To1, 1>},
    {OperationType::kRelu6, writePlain<Builtin::kRelu6, 1>},
    {OperationType::kRelu0To1, writePlain<Builtin::kRelu0To1, 1>},
    {OperationType::kLogistic, writePlain<Builtin::kLogistic, 1>},
    {OperationType::kTanh, writePlain<Builtin::kTanh, 1>},
    {OperationType::kHardSwish, writePlain<Builtin::kHardSwish, 1>},
    {OperationType::kGelu, writeGelu},
    {OperationType::kElu, writeElu},
    {OperationType::kAbs, writePlain<Builtin::kAbs, 1>},
    {OperationType::kNeg, writePlain<Builtin::kNeg, 1>},
    {OperationType::kSign, writePlain<Builtin::kSign, 1>},
    {OperationType::kFloor, writePlain<Builtin::kFloor, 1>},
    {OperationType::kCeil, writePlain<Builtin::kCeil, 1>},
    {OperationType::kRound, writePlain<Builtin::kRound, 1>},
    {OperationType::kExp, writePlain<Builtin::kExp, 1>},
    {OperationType::kLog, writePlain<Builtin::kLog, 1>},
    {OperationType::kSin, writePlain<Builtin::kSin, 1>},
    {OperationType::kCos, writePlain<Builtin::kCos, 1>},
    {OperationType::kSqrt, writePlain<Builtin::kSqrt, 1>},
    {OperationType::kRsqrt, writePlain<Builtin::kRsqrt, 1>},
    {OperationType::kQuantize, writePlain<Builtin::kQuantize, 1>},
    {OperationType::kDequantize, writePlain<Builtin::kDequantize, 1>},
    {OperationType::kCast, writeCast},
    {OperationType::kSoftmax, writeSoftmax},
    {OperationType::kLogSoftmax, writeLogSoftmax},
    {OperationType::kL2Normalization, writeL2Normalization},
    {OperationType::kLocalResponseNormalization, writeLocalResponseNormalization},
    {OperationType::kMean, writeReduction<Builtin::kMean>},
    {OperationType::kReduceSum, writeReduction<Builtin::kSum>},
    {OperationType::kReduceProd, writeReduction<Builtin::kReduceProd>},
    {OperationType::kReduceMax, writeReduction<Builtin::kReduceMax>},
    {OperationType::kReduceMin, writeReduction<Builtin::kReduceMin>},
    {OperationType::kReduceAny, writeReduction<Builtin::kReduceAny>},
    {OperationType::kReduceAll, writeReduction<Builtin::kReduceAll>},
    {OperationType::kArgmax, writeArgument<Builtin::kArgMax>},
    {OperationType::kArgmax64, writeArgument<Builtin::kArgMax>},
    {OperationType::kArgmin, writeArgument<Builtin::kArgMin>},
    {OperationType::kArgmin64, writeArgument<Builtin::kArgMin>},
    {OperationType::kBatchMatmul, writeBatchMatmul},
    {OperationType::kCumsum, writeCumsum},
    {OperationType::kEmbeddingLookup, writePlain<Builtin::kEmbeddingLookup, 2>},
};

}  // namespace

std::span<const OperationEntry> elementwiseOperations() {
  return kElementwiseOperations;
}

}  // namespace hearth::drivers::delegate
