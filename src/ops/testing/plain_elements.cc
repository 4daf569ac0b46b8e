// SPDX-License-Identifier: Apache-2.0
#include <numbers>
#include <optional>

#include "ops/testing/plain_operations.h"
#include "ops/testing/plain_tensor.h"

namespace hearth::ops::plain {
namespace {

double gelu(double x, bool isByTanh) {
  if (isByTanh)
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
}

// Nothing for other operations.
std::optional<double> functionOf(const OperationContext& context, double x) {
  switch (context.operation->type) {
    case OperationType::kRelu:
      return std::max(x, 0.0);
    case OperationType::kRelu1:
      return std::clamp(x, -1.0, 1.0);
    case OperationType::kRelu6:
      return std::clamp(x, 0.0, 6.0);
    case OperationType::kRelu0To1:
      return std::clamp(x, 0.0, 1.0);
    case OperationType::kTanh:
      return std::tanh(x);
    case OperationType::kLogistic:
      return 1 / (1 + std::exp(-x));
    case OperationType::kAbs:
      return std::fabs(x);
    case OperationType::kNeg:
      return -x;
    case OperationType::kHardSwish:
      return x * std::clamp(x + 3, 0.0, 6.0) / 6;
    case OperationType::kSin:
      return std::sin(x);
    case OperationType::kCos:
      return std::cos(x);
    case OperationType::kExp:
      return std::exp(x);
    case OperationType::kGelu:
      return gelu(x, scalarAt(context, 1) != 0);
    case OperationType::kFloor:
      return std::floor(x);
    case OperationType::kCeil:
      return std::ceil(x);
    case OperationType::kRound: {
      // Halves to the even one of their neighbours.
      const double below = std::floor(x);
      if (x - below != 0.5) return std::round(x);
      return std::fmod(below, 2) == 0 ? below : below + 1;
    }
    case OperationType::kSign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case OperationType::kDequantize:
    case OperationType::kQuantize:
      return x;
    default:
      return std::nullopt;
  }
}

std::optional<double> pairOf(OperationType type, double a, double b) {
  switch (type) {
    case OperationType::kAdd:
      return a + b;
    case OperationType::kSub:
      return a - b;
    case OperationType::kMul:
      return a * b;
    case OperationType::kMaximum:
      return a > b ? a : b;
    case OperationType::kMinimum:
      return a < b ? a : b;
    case OperationType::kPrelu:
      return a < 0 ? a * b : a;
    default:
      return std::nullopt;
  }
}

// Sums, differences and products keep their lower bits. What is divided by 0 gives 0.
std::optional<int64_t> integerPairOf(OperationType type, int64_t a, int64_t b) {
  const auto left = static_cast<uint64_t>(a);
  const auto right = static_cast<uint64_t>(b);
  const int64_t quotient = b == 0 ? 0 : b == -1 ? static_cast<int64_t>(0 - left) : a / b;
  const bool isBelow = b != 0 && b != -1 && a % b != 0 && (a < 0) != (b < 0);
  switch (type) {
    case OperationType::kAdd:
      return static_cast<int64_t>(left + right);
    case OperationType::kSub:
      return static_cast<int64_t>(left - right);
    case OperationType::kMul:
      return static_cast<int64_t>(left * right);
    case OperationType::kMaximum:
      return a > b ? a : b;
    case OperationType::kMinimum:
      return a < b ? a : b;
    case OperationType::kFloorDiv:
      return isBelow ? quotient - 1 : quotient;
    case OperationType::kFloorMod:
      if (b == 0) return 0;
      return static_cast<int64_t>(left - static_cast<uint64_t>(quotient) * right) +
             (isBelow ? b : 0);
    default:
      return std::nullopt;
  }
}

template <typename T>
std::optional<bool> comparisonOf(OperationType type, T a, T b) {
  switch (type) {
    case OperationType::kEqual:
      return a == b;
    case OperationType::kNotEqual:
      return a != b;
    case OperationType::kLess:
      return a < b;
    case OperationType::kGreaterEqual:
      return a >= b;
    default:
      return std::nullopt;
  }
}

// Whether the first two inputs are broadcast to the output and computed.
bool computePairs(const OperationContext& context) {
  const OperationType type = context.operation->type;
  const bool isLogical = type == OperationType::kLogicalAnd || type == OperationType::kLogicalOr;
  const bool isComparison = comparisonOf(type, 0, 0).has_value();
  if (!isLogical && !isComparison && !pairOf(type, 0, 0) && !integerPairOf(type, 0, 1))
    return false;
  const Tensor& a = context.inputs[0];
  const Tensor& b = context.inputs[1];
  const Tensor& output = context.outputs[0];
  const int64_t activation = context.inputs.size() > 2 ? scalarAt(context, 2) : 0;
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    const int64_t placeA = broadcastPlace(index, a.dimensions);
    const int64_t placeB = broadcastPlace(index, b.dimensions);
    if (isLogical) {
      const bool left = integerAt(a, placeA) != 0;
      const bool right = integerAt(b, placeB) != 0;
      putInteger(output, place, type == OperationType::kLogicalAnd ? left && right : left || right);
    } else if (isComparison) {
      // Real numbers are compared as float32.
      putInteger(output, place,
                 isInteger(a.type())
                     ? *comparisonOf(type, integerAt(a, placeA), integerAt(b, placeB))
                     : *comparisonOf(type, static_cast<float>(realAt(a, placeA)),
                                     static_cast<float>(realAt(b, placeB))));
    } else if (isInteger(a.type())) {
      putInteger(output, place, *integerPairOf(type, integerAt(a, placeA), integerAt(b, placeB)));
      if (activation != 0)
        putInteger(output, place,
                   static_cast<int64_t>(
                       activate(static_cast<double>(integerAt(output, place)), activation)));
    } else {
      putReal(output, place,
              activate(*pairOf(type, realAt(a, placeA), realAt(b, placeB)), activation));
    }
  });
  return true;
}

void select(const OperationContext& context) {
  const Tensor& output = context.outputs[0];
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    const Tensor& condition = context.inputs[0];
    const bool isChosen = integerAt(condition, broadcastPlace(index, condition.dimensions)) != 0;
    const Tensor& chosen = context.inputs[isChosen ? 1 : 2];
    copyElement(chosen, broadcastPlace(index, chosen.dimensions), output, place);
  });
}

// Numbers as they are stored, without scale and zero point; real ones are cut towards zero.
void cast(const OperationContext& context) {
  const Tensor& input = context.inputs[0];
  const Tensor& output = context.outputs[0];
  for (int64_t i = 0; i < countOf(output.dimensions); ++i) {
    if (input.type() == output.type())
      copyElement(input, i, output, i);
    else if (!isInteger(output.type()))
      putReal(output, i, realAt(input, i));
    else if (output.type() == OperandType::kTensorBool8)
      putInteger(output, i, realAt(input, i) != 0);
    else if (isInteger(input.type()))
      putInteger(output, i, integerAt(input, i));
    else
      putInteger(output, i, static_cast<int64_t>(realAt(input, i)));
  }
}

}  // namespace

bool computeElements(const OperationContext& context) {
  const OperationType type = context.operation->type;
  const Tensor& output = context.outputs[0];
  if (type == OperationType::kSelect || type == OperationType::kSelectV2) {
    select(context);
    return true;
  }
  if (type == OperationType::kCast) {
    cast(context);
    return true;
  }
  if (type == OperationType::kLogicalNot) {
    for (int64_t i = 0; i < countOf(output.dimensions); ++i)
      putInteger(output, i, integerAt(context.inputs[0], i) == 0);
    return true;
  }
  if (functionOf(context, 0.0)) {
    for (int64_t i = 0; i < countOf(output.dimensions); ++i)
      putReal(output, i, *functionOf(context, realAt(context.inputs[0], i)));
    return true;
  }
  return computePairs(context);
}

bool compute(const OperationContext& context) {
  return computeMove(context) || computeElements(context) || computeRows(context) ||
         computeLayer(context);
}

}  // namespace hearth::ops::plain
