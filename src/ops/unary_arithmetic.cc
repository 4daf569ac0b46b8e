// SPDX-License-Identifier: Apache-2.0
// ABS, EXP, FLOOR, LOG, NEG, RSQRT, SIN and SQRT (input: data), and of the extension CEIL, COS,
// ROUND (halves to even) and SIGN. Outside a function's domain float results are NaN or infinite as
// in IEEE 754. The absolute value and the negation of the least integer are that integer.
#include <cmath>
#include <type_traits>

#include "ops/elementwise.h"
#include "ops/registry.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kRealTypes = kFloatTensors | kQuant8Tensors | kQuant16Activations;
constexpr TypeSet kNumericTypes =
    kRealTypes | OperandType::kTensorInt32 | OperandType::kTensorInt64;

template <float (*function)(float)>
Status execute(OperationContext& context) {
  computeReals(context, function);
  return {};
}

float absolute(float x) {
  return std::fabs(x);
}
float smallestIntegerAbove(float x) {
  return std::ceil(x);
}
float exponential(float x) {
  return std::exp(x);
}
float largestIntegerBelow(float x) {
  return std::floor(x);
}
float logarithm(float x) {
  return std::log(x);
}
float negative(float x) {
  return -x;
}
float inverseSquareRoot(float x) {
  return 1.0f / std::sqrt(x);
}
float cosine(float x) {
  return std::cos(x);
}
float sine(float x) {
  return std::sin(x);
}
float nearestInteger(float x) {
  return std::nearbyint(x);
}
float signOf(float x) {
  const float positive = x > 0.0f ? 1.0f : x;
  const float either = x < 0.0f ? -1.0f : positive;
  return x == 0.0f ? 0.0f : either;
}
float squareRoot(float x) {
  return std::sqrt(x);
}

template <typename T>
T negate(T x) {
  return static_cast<T>(std::make_unsigned_t<T>(0) - static_cast<std::make_unsigned_t<T>>(x));
}

template <typename T>
T magnitude(T x) {
  return x < 0 ? negate(x) : x;
}

Status executeAbs(OperationContext& context) {
  if (context.inputs[0].type() == OperandType::kTensorInt32)
    computeElements<int32_t>(context, magnitude<int32_t>);
  else if (context.inputs[0].type() == OperandType::kTensorInt64)
    computeElements<int64_t>(context, magnitude<int64_t>);
  else
    computeReals(context, absolute);
  return {};
}

template <typename T>
T integerSign(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

Status executeSign(OperationContext& context) {
  if (context.inputs[0].type() == OperandType::kTensorInt32)
    computeElements<int32_t>(context, integerSign<int32_t>);
  else if (context.inputs[0].type() == OperandType::kTensorInt64)
    computeElements<int64_t>(context, integerSign<int64_t>);
  else
    computeReals(context, signOf);
  return {};
}

Status executeNeg(OperationContext& context) {
  if (context.inputs[0].type() == OperandType::kTensorInt32)
    computeElements<int32_t>(context, negate<int32_t>);
  else if (context.inputs[0].type() == OperandType::kTensorInt64)
    computeElements<int64_t>(context, negate<int64_t>);
  else
    computeReals(context, negative);
  return {};
}

}  // namespace

const OperationDefinition kAbsOperation = {OperationType::kAbs, validateUnary<kNumericTypes>,
                                           prepareElementwise, executeAbs};
const OperationDefinition kCeilOperation = {OperationType::kCeil, validateUnary<kRealTypes>,
                                            prepareElementwise, execute<smallestIntegerAbove>};
const OperationDefinition kCosOperation = {OperationType::kCos, validateUnary<kRealTypes>,
                                           prepareElementwise, execute<cosine>};
const OperationDefinition kExpOperation = {OperationType::kExp, validateUnary<kRealTypes>,
                                           prepareElementwise, execute<exponential>};
const OperationDefinition kFloorOperation = {OperationType::kFloor, validateUnary<kRealTypes>,
                                             prepareElementwise, execute<largestIntegerBelow>};
const OperationDefinition kLogOperation = {OperationType::kLog, validateUnary<kRealTypes>,
                                           prepareElementwise, execute<logarithm>};
const OperationDefinition kNegOperation = {OperationType::kNeg, validateUnary<kNumericTypes>,
                                           prepareElementwise, executeNeg};
const OperationDefinition kRoundOperation = {OperationType::kRound, validateUnary<kRealTypes>,
                                             prepareElementwise, execute<nearestInteger>};
const OperationDefinition kRsqrtOperation = {OperationType::kRsqrt, validateUnary<kRealTypes>,
                                             prepareElementwise, execute<inverseSquareRoot>};
const OperationDefinition kSignOperation = {OperationType::kSign, validateUnary<kNumericTypes>,
                                            prepareElementwise, executeSign};
const OperationDefinition kSinOperation = {OperationType::kSin, validateUnary<kRealTypes>,
                                           prepareElementwise, execute<sine>};
const OperationDefinition kSqrtOperation = {OperationType::kSqrt, validateUnary<kRealTypes>,
                                            prepareElementwise, execute<squareRoot>};

}  // namespace hearth::ops
