// SPDX-License-Identifier: Apache-2.0
// Operations on each element: arithmetic, comparisons, logic, activation functions, soft-max.
#include <cmath>
#include <cstring>

#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

Result<uint32_t> bitcast(OperatorView& view, uint32_t operand, OperandType type) {
  HEARTH_ASSIGN(const uint32_t same, view.builder().temporaryLike(operand));
  view.builder().operand(same).type = type;
  HEARTH_TRY(view.emit(OperationType::kBitcast, {operand}, {same}));
  return same;
}

// Sums, differences and products have the same bits with and without a sign.
Status emitUnsigned(OperatorView& view, OperationType type, uint32_t left, uint32_t right) {
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  HEARTH_ASSIGN(const uint32_t first, bitcast(view, left, OperandType::kTensorInt32));
  HEARTH_ASSIGN(const uint32_t second, bitcast(view, right, OperandType::kTensorInt32));
  HEARTH_ASSIGN(const uint32_t none, view.scalar(kFuseNone));
  HEARTH_ASSIGN(const uint32_t result, view.builder().temporaryLike(output));
  view.builder().operand(result).type = OperandType::kTensorInt32;
  HEARTH_TRY(view.emit(type, {first, second, none}, {result}));
  return view.emit(OperationType::kBitcast, {result}, {output});
}

// Products of 16-bit numbers that are rounded once, to 8 bits.
Status emitNarrowProduct(OperatorView& view, uint32_t left, uint32_t right,
                         schema::ActivationFunctionType function) {
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  HEARTH_ASSIGN(const uint32_t first, view.dequantized(left));
  HEARTH_ASSIGN(const uint32_t second, view.dequantized(right));
  HEARTH_ASSIGN(const Activation activation, view.planActivation(function));
  HEARTH_ASSIGN(const uint32_t fuse, view.scalar(activation.fuse));
  HEARTH_ASSIGN(const uint32_t product, view.floatsLike(output));
  HEARTH_TRY(view.emit(OperationType::kMul, {first, second, fuse}, {product}));
  return view.emit(OperationType::kQuantize, {product}, {output});
}

template <typename Options>
Status translateArithmetic(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t left, view.input(0));
  HEARTH_ASSIGN(const uint32_t right, view.input(1));
  if (type != OperationType::kMul) HEARTH_TRY(view.takeOutputType(1));
  const bool isLinear =
      type == OperationType::kAdd || type == OperationType::kSub || type == OperationType::kMul;
  if (isLinear && view.operand(left).type == OperandType::kTensorUint32 &&
      view.options<Options>().fused_activation_function() == schema::ActivationFunctionType::NONE)
    return emitUnsigned(view, type, left, right);
  if (type == OperationType::kMul && view.isQuantized16(left) && view.isQuantized16(right)) {
    HEARTH_ASSIGN(const uint32_t output, view.output(0));
    if (view.isQuantized8(output))
      return emitNarrowProduct(view, left, right,
                               view.options<Options>().fused_activation_function());
  }
  HEARTH_ASSIGN(const Activation activation,
                view.planActivation(view.options<Options>().fused_activation_function()));
  HEARTH_ASSIGN(const uint32_t fuse, view.scalar(activation.fuse));
  HEARTH_TRY(view.emit(type, {left, right, fuse}, {activation.target}));
  return view.finishActivation(activation);
}

Status translateSquare(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t none, view.scalar(kFuseNone));
  return view.emit(type, {input, input, none});
}

// Becomes a chain of additions.
Status translateAddN(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(uint32_t sum, view.input(0));
  HEARTH_ASSIGN(const uint32_t target, view.output(0));
  HEARTH_ASSIGN(const uint32_t none, view.scalar(kFuseNone));
  if (view.inputCount() == 1) return view.builder().emitCopy(sum, target, view.name());
  for (size_t i = 1; i < view.inputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t next, view.input(i));
    uint32_t result = target;
    if (i + 1 < view.inputCount()) {
      HEARTH_ASSIGN(result, view.builder().temporaryLike(target));
    }
    HEARTH_TRY(view.emit(type, {sum, next, none}, {result}));
    sum = result;
  }
  return {};
}

// NNAPI rounds quotients of integers down; TFLite truncates them.
Status translateDiv(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t left, view.input(0));
  const OperandType operandType = view.operand(left).type;
  const bool isInteger =
      operandType == OperandType::kTensorInt32 || operandType == OperandType::kTensorInt64;
  return translateArithmetic<schema::DivOptions>(view,
                                                 isInteger ? OperationType::kTruncatedDiv : type);
}

Status translateGelu(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t approximate,
                view.scalar(view.options<schema::GeluOptions>().approximate()));
  return view.emit(type, {input, approximate});
}

// SELECT_V2 copies its values; NNAPI's SELECT rescales them.
Status emitSelectV2(OperatorView& view, uint32_t condition, uint32_t yes, uint32_t no) {
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  HEARTH_ASSIGN(const uint32_t first, view.rescaledLike(yes, output));
  HEARTH_ASSIGN(const uint32_t second, view.rescaledLike(no, output));
  return view.emit(OperationType::kSelectV2, {condition, first, second}, {output});
}

Status translateSelectV2(OperatorView& view, OperationType) {
  HEARTH_ASSIGN(const uint32_t condition, view.input(0));
  HEARTH_ASSIGN(const uint32_t yes, view.input(1));
  HEARTH_ASSIGN(const uint32_t no, view.input(2));
  return emitSelectV2(view, condition, yes, no);
}

// NNAPI's SELECT does not broadcast. Before SELECT_V2, TFLite applied a condition of rank 1 to the
// first dimension of the values.
Status translateSelect(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(uint32_t condition, view.input(0));
  HEARTH_ASSIGN(const uint32_t yes, view.input(1));
  HEARTH_ASSIGN(const uint32_t no, view.input(2));
  const graph::Operand& values = view.operand(yes);
  const graph::Dimensions given = view.operand(condition).dimensions;
  const bool isSame = given == values.dimensions && given == view.operand(no).dimensions &&
                      view.operand(condition).isRankZeroTensor == values.isRankZeroTensor;
  if (isSame) return view.emit(type, {condition, yes, no});
  if (given.size() == 1 && values.dimensions.size() > 1) {
    if (given[0] == 0)
      return fail(ErrorCode::kUnsupported, "Its condition has an unknown number of elements.");
    std::vector<int32_t> shape(values.dimensions.size(), 1);
    shape[0] = static_cast<int32_t>(given[0]);
    HEARTH_ASSIGN(const uint32_t shapeOperand, view.builder().intTensor(shape));
    HEARTH_ASSIGN(const uint32_t column, view.builder().temporaryLike(condition));
    view.builder().operand(column).dimensions.assign(shape.begin(), shape.end());
    HEARTH_TRY(view.emit(OperationType::kReshape, {condition, shapeOperand}, {column}));
    condition = column;
  }
  return emitSelectV2(view, condition, yes, no);
}

// The slope as a tensor of one element of the input's type: the scale carries the value.
Result<uint32_t> slopeTensor(OperatorView& view, OperandType type, float slope) {
  if (!std::isfinite(slope))
    return fail(ErrorCode::kBadData, "Its slope is {}, it must be finite.", slope);
  if (type == OperandType::kTensorFloat32) return view.floatTensor(slope);
  graph::Operand like;
  like.type = type;
  like.dimensions = {1};
  if (type == OperandType::kTensorFloat16) {
    const _Float16 half = static_cast<_Float16>(slope);
    uint8_t bytes[sizeof(half)];
    std::memcpy(bytes, &half, sizeof(half));
    return view.builder().constantTensor(std::move(like), bytes);
  }
  if (type == OperandType::kTensorQuant16Symm) {
    like.scale = slope == 0.0f ? 1.0f : std::abs(slope);
    const int16_t sign = slope > 0.0f ? 1 : slope < 0.0f ? -1 : 0;
    uint8_t bytes[sizeof(sign)];
    std::memcpy(bytes, &sign, sizeof(sign));
    return view.builder().constantTensor(std::move(like), bytes);
  }
  if (type != OperandType::kTensorQuant8Asymm && type != OperandType::kTensorQuant8AsymmSigned)
    return fail(ErrorCode::kUnsupported, "Its input is {}, which is not supported.",
                graph::nameOf(type));
  like.scale = slope == 0.0f ? 1.0f : std::abs(slope);
  like.zeroPoint = slope < 0.0f ? 1 : 0;
  const uint8_t value = slope > 0.0f ? 1 : 0;
  return view.builder().constantTensor(std::move(like), {&value, 1});
}

Status translateLeakyRelu(OperatorView& view, OperationType) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t slope,
                slopeTensor(view, view.operand(input).type,
                            view.options<schema::LeakyReluOptions>().alpha()));
  return view.emit(OperationType::kPrelu, {input, slope});
}

Status translateElu(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t alpha, view.scalar(1.0f));
  return view.emit(type, {input, alpha});
}

Status translateSoftmax(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t beta, view.scalar(view.options<schema::SoftmaxOptions>().beta()));
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  if (!view.isQuantized8(input) || !view.isQuantized16(output))
    return view.emit(type, {input, beta});
  // 8-bit data may give 16-bit results, which NNAPI lacks.
  HEARTH_ASSIGN(const uint32_t values, view.dequantized(input));
  HEARTH_ASSIGN(const uint32_t shares, view.floatsLike(output));
  HEARTH_TRY(view.emit(type, {values, beta}, {shares}));
  return view.emit(OperationType::kQuantize, {shares}, {output});
}

Status translateLogSoftmax(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t beta, view.scalar(1.0f));
  HEARTH_ASSIGN(const uint32_t axis, view.scalar(-1));
  return view.emit(type, {input, beta, axis});
}

}  // namespace

std::span<const TranslatorEntry> elementwiseTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::ADD, translateArithmetic<schema::AddOptions>, OperationType::kAdd},
      {BuiltinOperator::SUB, translateArithmetic<schema::SubOptions>, OperationType::kSub},
      {BuiltinOperator::MUL, translateArithmetic<schema::MulOptions>, OperationType::kMul},
      {BuiltinOperator::DIV, translateDiv, OperationType::kDiv},
      {BuiltinOperator::SQUARED_DIFFERENCE, translatePlain<2>, OperationType::kSquaredDifference},
      {BuiltinOperator::BITWISE_XOR, translatePlain<2>, OperationType::kBitwiseXor},
      {BuiltinOperator::RIGHT_SHIFT, translatePlain<2>, OperationType::kRightShift},
      {BuiltinOperator::ADD_N, translateAddN, OperationType::kAdd},
      {BuiltinOperator::SQUARE, translateSquare, OperationType::kMul},
      {BuiltinOperator::ATAN2, translatePlain<2>, OperationType::kAtan2},
      {BuiltinOperator::CEIL, translatePlain<1>, OperationType::kCeil},
      {BuiltinOperator::COS, translatePlain<1>, OperationType::kCos},
      {BuiltinOperator::GELU, translateGelu, OperationType::kGelu},
      {BuiltinOperator::LEAKY_RELU, translateLeakyRelu, OperationType::kPrelu},
      {BuiltinOperator::ELU, translateElu, OperationType::kElu},
      {BuiltinOperator::SOFTMAX, translateSoftmax, OperationType::kSoftmax},
      {BuiltinOperator::LOG_SOFTMAX, translateLogSoftmax, OperationType::kLogSoftmax},
      {BuiltinOperator::ABS, translatePlain<1>, OperationType::kAbs},
      {BuiltinOperator::EXP, translatePlain<1>, OperationType::kExp},
      {BuiltinOperator::FLOOR, translatePlain<1>, OperationType::kFloor},
      {BuiltinOperator::FLOOR_DIV, translatePlain<2>, OperationType::kFloorDiv},
      {BuiltinOperator::FLOOR_MOD, translatePlain<2>, OperationType::kFloorMod},
      {BuiltinOperator::HARD_SWISH, translatePlain<1>, OperationType::kHardSwish},
      {BuiltinOperator::LOG, translatePlain<1>, OperationType::kLog},
      {BuiltinOperator::LOGICAL_NOT, translatePlain<1>, OperationType::kLogicalNot},
      {BuiltinOperator::LOGISTIC, translatePlain<1>, OperationType::kLogistic},
      {BuiltinOperator::NEG, translatePlain<1>, OperationType::kNeg},
      {BuiltinOperator::RELU, translatePlain<1>, OperationType::kRelu},
      {BuiltinOperator::RELU6, translatePlain<1>, OperationType::kRelu6},
      {BuiltinOperator::RELU_0_TO_1, translatePlain<1>, OperationType::kRelu0To1},
      {BuiltinOperator::ROUND, translatePlain<1>, OperationType::kRound},
      {BuiltinOperator::SIGN, translatePlain<1>, OperationType::kSign},
      {BuiltinOperator::ZEROS_LIKE, translatePlain<1>, OperationType::kZerosLike},
      {BuiltinOperator::RELU_N1_TO_1, translatePlain<1>, OperationType::kRelu1},
      {BuiltinOperator::RSQRT, translatePlain<1>, OperationType::kRsqrt},
      {BuiltinOperator::SIN, translatePlain<1>, OperationType::kSin},
      {BuiltinOperator::SQRT, translatePlain<1>, OperationType::kSqrt},
      {BuiltinOperator::TANH, translatePlain<1>, OperationType::kTanh},
      {BuiltinOperator::EQUAL, translatePlain<2>, OperationType::kEqual},
      {BuiltinOperator::GREATER, translatePlain<2>, OperationType::kGreater},
      {BuiltinOperator::GREATER_EQUAL, translatePlain<2>, OperationType::kGreaterEqual},
      {BuiltinOperator::LESS, translatePlain<2>, OperationType::kLess},
      {BuiltinOperator::LESS_EQUAL, translatePlain<2>, OperationType::kLessEqual},
      {BuiltinOperator::LOGICAL_AND, translatePlain<2>, OperationType::kLogicalAnd},
      {BuiltinOperator::LOGICAL_OR, translatePlain<2>, OperationType::kLogicalOr},
      {BuiltinOperator::MAXIMUM, translatePlain<2>, OperationType::kMaximum},
      {BuiltinOperator::MINIMUM, translatePlain<2>, OperationType::kMinimum},
      {BuiltinOperator::NOT_EQUAL, translatePlain<2>, OperationType::kNotEqual},
      {BuiltinOperator::POW, translatePlain<2>, OperationType::kPow},
      {BuiltinOperator::PRELU, translatePlain<2>, OperationType::kPrelu},
      {BuiltinOperator::SELECT, translateSelect, OperationType::kSelect},
      {BuiltinOperator::SELECT_V2, translateSelectV2, OperationType::kSelectV2},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
