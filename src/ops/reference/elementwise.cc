// SPDX-License-Identifier: Apache-2.0
// Operations on each element by itself, or on pairs of elements of two tensors that are broadcast.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "ops/binary_arithmetic.h"
#include "ops/fixed_point.h"
#include "ops/reference/elements.h"
#include "ops/reference/kernels.h"
#include "ops/validation.h"

namespace hearth::ops::reference {
namespace {

double gelu(double x, bool isByTanh) {
  if (isByTanh)
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  // Equal to 1 + erf(y), but erfc(-y) keeps its precision where the result is small.
  return x / 2 * std::erfc(-x / std::numbers::sqrt2);
}

double nearestInteger(double x) {
  // Rounds halves to the even neighbour.
  const double below = std::floor(x);
  if (x - below != 0.5) return std::round(x);
  return std::fmod(below, 2) == 0 ? below : below + 1;
}

double boundedBy(double lowest, double x, double highest) {
  return x < lowest ? lowest : x > highest ? highest : x;
}

// `parameter` is the second argument, for functions that have one.
double functionOf(OperationType type, double x, double parameter) {
  switch (type) {
    case OperationType::kRelu:
      return x < 0 ? 0 : x;
    case OperationType::kRelu1:
      return boundedBy(-1, x, 1);
    case OperationType::kRelu6:
      return boundedBy(0, x, 6);
    case OperationType::kRelu0To1:
      return boundedBy(0, x, 1);
    case OperationType::kTanh:
      return std::tanh(x);
    case OperationType::kLogistic:
      return 1 / (1 + std::exp(-x));
    case OperationType::kElu:
      return x < 0 ? parameter * std::expm1(x) : x;
    case OperationType::kHardSwish:
      return x * boundedBy(0, x + 3, 6) / 6;
    case OperationType::kGelu:
      return gelu(x, parameter != 0);
    case OperationType::kAbs:
      return std::fabs(x);
    case OperationType::kNeg:
      return -x;
    case OperationType::kSign:
      return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x;
    case OperationType::kSin:
      return std::sin(x);
    case OperationType::kCos:
      return std::cos(x);
    case OperationType::kExp:
      return std::exp(x);
    case OperationType::kLog:
      return std::log(x);
    case OperationType::kSqrt:
      return std::sqrt(x);
    case OperationType::kRsqrt:
      return 1 / std::sqrt(x);
    case OperationType::kFloor:
      return std::floor(x);
    case OperationType::kCeil:
      return std::ceil(x);
    case OperationType::kRound:
      return nearestInteger(x);
    default:
      // QUANTIZE and DEQUANTIZE.
      return x;
  }
}

// ABS, NEG and SIGN. The negation of the least integer is that integer.
int64_t integerFunctionOf(OperationType type, int64_t x) {
  if (type == OperationType::kSign) return (x > 0 ? 1 : 0) - (x < 0 ? 1 : 0);
  if (type == OperationType::kAbs && x >= 0) return x;
  return static_cast<int64_t>(0 - static_cast<uint64_t>(x));
}

double remainderOf(double a, double b) {
  const double remainder = std::fmod(a, b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double pairOf(OperationType type, double a, double b) {
  switch (type) {
    case OperationType::kAdd:
      return a + b;
    case OperationType::kSub:
      return a - b;
    case OperationType::kMul:
      return a * b;
    case OperationType::kSquaredDifference:
      return (a - b) * (a - b);
    case OperationType::kDiv:
    case OperationType::kTruncatedDiv:
      return a / b;
    case OperationType::kFloorDiv:
      // The quotient is rounded to float32 first, as in TFLite: some quotients become whole
      // numbers.
      return std::floor(static_cast<float>(a / b));
    case OperationType::kFloorMod:
      return remainderOf(a, b);
    case OperationType::kMaximum:
      return a > b || std::isnan(a) ? a : b;
    case OperationType::kMinimum:
      return a < b || std::isnan(a) ? a : b;
    case OperationType::kPow:
      return std::pow(a, b);
    case OperationType::kAtan2:
      return std::atan2(a, b);
    default:
      // PRELU.
      return a < 0 ? a * b : a;
  }
}

using Complex = std::complex<double>;

Complex complexAt(const Tensor& tensor, int64_t place) {
  return {loadAs<float>(tensor, 2 * place), loadAs<float>(tensor, 2 * place + 1)};
}

// The operator of std::complex makes infinities of some products that are NaN by this definition.
Complex productOf(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

Complex complexPairOf(OperationType type, Complex a, Complex b) {
  switch (type) {
    case OperationType::kAdd:
      return a + b;
    case OperationType::kSub:
      return a - b;
    case OperationType::kMul:
      return productOf(a, b);
    default:
      // DIV.
      return productOf(a, std::conj(b)) / std::norm(b);
  }
}

// Division by 0 gives 0. The least integer divided by -1 is that integer.
int64_t quotientOf(int64_t a, int64_t b, bool isFloor) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  return a / b - (isFloor && a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t powerOf(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    // The real power, cut towards zero.
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  uint64_t result = 1;
  uint64_t square = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent /= 2, square *= square)
    if (exponent % 2 == 1) result *= square;
  return static_cast<int64_t>(result);
}

// Results keep their lower bits.
int64_t integerPairOf(OperationType type, int64_t a, int64_t b) {
  const auto left = static_cast<uint64_t>(a);
  const auto right = static_cast<uint64_t>(b);
  switch (type) {
    case OperationType::kAdd:
      return static_cast<int64_t>(left + right);
    case OperationType::kSub:
      return static_cast<int64_t>(left - right);
    case OperationType::kMul:
      return static_cast<int64_t>(left * right);
    case OperationType::kSquaredDifference:
      return static_cast<int64_t>((left - right) * (left - right));
    case OperationType::kTruncatedDiv:
      return quotientOf(a, b, false);
    case OperationType::kFloorMod:
      if (b == 0) return 0;
      return static_cast<int64_t>(left - static_cast<uint64_t>(quotientOf(a, b, true)) * right);
    case OperationType::kMaximum:
      return a > b ? a : b;
    case OperationType::kMinimum:
      return a < b ? a : b;
    case OperationType::kPow:
      return powerOf(a, b);
    default:
      // DIV and FLOOR_DIV.
      return quotientOf(a, b, true);
  }
}

template <typename T>
bool comparisonOf(OperationType type, T a, T b) {
  switch (type) {
    case OperationType::kEqual:
      return a == b;
    case OperationType::kNotEqual:
      return a != b;
    case OperationType::kLess:
      return a < b;
    case OperationType::kLessEqual:
      return a <= b;
    case OperationType::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

// Calls visit(place, placeA, placeB) for each element of the output, of which the first two inputs
// are broadcast.
template <typename Visit>
void forEachPair(const OperationContext& context, const Visit& visit) {
  forEach(context.outputs[0].dimensions, [&](const Index& index, int64_t place) {
    visit(place, broadcastPlace(index, context.inputs[0].dimensions),
          broadcastPlace(index, context.inputs[1].dimensions));
  });
}

}  // namespace

Status computeUnary(const OperationContext& context) {
  const OperationType type = context.operation->type;
  const Tensor& input = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const double parameter = context.hasInput(1) ? realAt(context.inputs[1], 0) : 0;
  const bool areIntegers = isInteger(output.type());
  for (int64_t i = 0; i < countOf(output.dimensions); ++i) {
    if (areIntegers)
      putInteger(output, i, integerFunctionOf(type, integerAt(input, i)));
    else
      putReal(output, i, functionOf(type, realAt(input, i), parameter));
  }
  return {};
}

Status computeBinary(const OperationContext& context) {
  HEARTH_ASSIGN(const BinaryParameters parameters, parseBinary(context));
  const OperationType type = context.operation->type;
  const Tensor& a = context.inputs[0];
  const Tensor& b = context.inputs[1];
  const Tensor& output = context.outputs[0];
  const bool areIntegers = isInteger(output.type());
  if (output.type() == OperandType::kTensorComplex64) {
    forEachPair(context, [&](int64_t place, int64_t placeA, int64_t placeB) {
      const Complex value = complexPairOf(type, complexAt(a, placeA), complexAt(b, placeB));
      storeAs(output, 2 * place, static_cast<float>(value.real()));
      storeAs(output, 2 * place + 1, static_cast<float>(value.imag()));
    });
    return {};
  }
  forEachPair(context, [&](int64_t place, int64_t placeA, int64_t placeB) {
    if (!areIntegers)
      return putReal(
          output, place,
          activate(pairOf(type, realAt(a, placeA), realAt(b, placeB)), parameters.activation));
    putInteger(output, place, integerPairOf(type, integerAt(a, placeA), integerAt(b, placeB)));
    if (parameters.activation == FusedActivation::kNone) return;
    const int64_t value = integerAt(output, place);
    const ActivationRange range = activationRange(parameters.activation);
    if (value < range.lowest) putInteger(output, place, static_cast<int64_t>(range.lowest));
    if (value > range.highest) putInteger(output, place, static_cast<int64_t>(range.highest));
  });
  return {};
}

Status compare(const OperationContext& context) {
  const OperationType type = context.operation->type;
  const Tensor& a = context.inputs[0];
  const Tensor& b = context.inputs[1];
  if (a.type() == OperandType::kTensorString) {
    // Equal strings have one handle.
    forEachPair(context, [&](int64_t place, int64_t placeA, int64_t placeB) {
      const bool result =
          comparisonOf(type, loadAs<uint64_t>(a, placeA), loadAs<uint64_t>(b, placeB));
      putInteger(context.outputs[0], place, result ? 1 : 0);
    });
    return {};
  }
  forEachPair(context, [&](int64_t place, int64_t placeA, int64_t placeB) {
    // Real numbers are compared as float32.
    const bool result = isInteger(a.type())
                            ? comparisonOf(type, integerAt(a, placeA), integerAt(b, placeB))
                            : comparisonOf(type, static_cast<float>(realAt(a, placeA)),
                                           static_cast<float>(realAt(b, placeB)));
    putInteger(context.outputs[0], place, result ? 1 : 0);
  });
  return {};
}

Status combineLogically(const OperationContext& context) {
  const bool isAnd = context.operation->type == OperationType::kLogicalAnd;
  forEachPair(context, [&](int64_t place, int64_t placeA, int64_t placeB) {
    const bool left = integerAt(context.inputs[0], placeA) != 0;
    const bool right = integerAt(context.inputs[1], placeB) != 0;
    putInteger(context.outputs[0], place, (isAnd ? left && right : left || right) ? 1 : 0);
  });
  return {};
}

// BITWISE_XOR and RIGHT_SHIFT of integers as they are stored.
Status combineBits(const OperationContext& context) {
  const bool isShift = context.operation->type == OperationType::kRightShift;
  const Tensor& a = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const bool isInt32 = output.type() == OperandType::kTensorInt32;
  const bool isUint32 = output.type() == OperandType::kTensorUint32;
  const int64_t width = static_cast<int64_t>(8 * graph::elementSize(output.type()));
  const auto valueAt = [&](const Tensor& tensor, int64_t place) -> int64_t {
    if (isInt32) return loadAs<int32_t>(tensor, place);
    if (isUint32) return loadAs<uint32_t>(tensor, place);
    return storedAt(tensor, place);
  };
  forEachPair(context, [&](int64_t place, int64_t placeA, int64_t placeB) {
    const int64_t left = valueAt(a, placeA);
    const int64_t right = valueAt(context.inputs[1], placeB);
    int64_t result = left ^ right;
    if (isShift) {
      // Halves and rounds down, once for each bit.
      result = left;
      for (int64_t i = 0; i < right && i < width - 1; ++i)
        result = result / 2 - (result % 2 < 0 ? 1 : 0);
    }
    if (isInt32 || isUint32)
      storeAs(output, place, static_cast<uint32_t>(result));
    else
      putStored(output, place, static_cast<int32_t>(result));
  });
  return {};
}

Status negateLogically(const OperationContext& context) {
  for (int64_t i = 0; i < countOf(context.outputs[0].dimensions); ++i)
    putInteger(context.outputs[0], i, integerAt(context.inputs[0], i) == 0 ? 1 : 0);
  return {};
}

Status rectifyParametrically(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const Tensor& slopes = context.inputs[1];
  const Tensor& output = context.outputs[0];
  const bool is16Bit = data.type() == OperandType::kTensorQuant16Symm;
  // TFLite defines the 16-bit LEAKY_RELU by these multipliers.
  const float outputScale = is16Bit ? output.operand->scale : 1.0f;
  const FixedMultiplier positive = toFixedMultiplier(data.operand->scale / outputScale);
  const FixedMultiplier negative =
      toFixedMultiplier(data.operand->scale * slopes.operand->scale / outputScale);
  forEachPair(context, [&](int64_t place, int64_t placeA, int64_t placeB) {
    if (!is16Bit)
      return putReal(output, place,
                     pairOf(OperationType::kPrelu, realAt(data, placeA), realAt(slopes, placeB)));
    const int32_t value = storedAt(data, placeA);
    const int32_t scaled = value < 0 ? multiply(value * storedAt(slopes, placeB), negative)
                                     : multiply(value, positive);
    putStored(output, place, std::clamp(scaled, -32768, 32767));
  });
  return {};
}

Status select(const OperationContext& context) {
  const Tensor& output = context.outputs[0];
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    const Tensor& condition = context.inputs[0];
    const bool isFirst = integerAt(condition, broadcastPlace(index, condition.dimensions)) != 0;
    const Tensor& chosen = context.inputs[isFirst ? 1 : 2];
    const int64_t from = broadcastPlace(index, chosen.dimensions);
    if (!graph::isQuantized(output.type()) || isSameQuantization(*chosen.operand, *output.operand))
      copyElement(chosen, from, output, place);
    else
      putReal(output, place, realAt(chosen, from));
  });
  return {};
}

}  // namespace hearth::ops::reference
