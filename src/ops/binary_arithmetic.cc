// SPDX-License-Identifier: Apache-2.0
// ADD, SUB, MUL and DIV (inputs: two tensors, activation), MAXIMUM, MINIMUM and POW (two tensors).
// Quantised inputs and the output may each have a quantisation of their own. Integer results wrap;
// integer division rounds towards negative infinity, and by zero it gives 0. TRUNCATED_DIV of the
// extension is DIV whose integer results are cut towards zero; FLOOR_DIV, FLOOR_MOD (the remainder
// has the divisor's sign) and ATAN2 take two tensors.
#include "ops/binary_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/broadcast.h"
#include "ops/broadcast_rows.h"
#include "ops/element_visitor.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kIntegers = OperandType::kTensorInt32 | OperandType::kTensorInt64;
constexpr TypeSet kSymmetric16 = OperandType::kTensorQuant16Symm | OperandType::kTensorInt16;
constexpr TypeSet kArithmeticTensors = kFloatTensors | kQuant8Tensors | kSymmetric16 | kIntegers;

bool hasActivation(OperationType type) {
  return type == OperationType::kAdd || type == OperationType::kSub ||
         type == OperationType::kMul || type == OperationType::kDiv ||
         type == OperationType::kTruncatedDiv;
}

Status validateTypes(const graph::Subgraph& subgraph, const graph::Operation& operation,
                     TypeSet types) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(hasActivation(operation.type) ? 3 : 2, 1));
  HEARTH_TRY(signature.inputType(0, types));
  HEARTH_TRY(signature.inputTypeLike(1, 0));
  if (hasActivation(operation.type)) HEARTH_TRY(signature.inputType(2, OperandType::kInt32));
  HEARTH_TRY(signature.inputRank(0, 0, kMaximumRank));
  HEARTH_TRY(signature.inputRank(1, 0, kMaximumRank));
  return signature.outputTypeLike(0, 0);
}

Status validateArithmetic(const graph::Model&, const graph::Subgraph& subgraph,
                          const graph::Operation& operation) {
  return validateTypes(subgraph, operation, kArithmeticTensors);
}

Status validatePow(const graph::Model&, const graph::Subgraph& subgraph,
                   const graph::Operation& operation) {
  return validateTypes(subgraph, operation, kFloatTensors | kIntegers);
}

Status validateAtan2(const graph::Model&, const graph::Subgraph& subgraph,
                     const graph::Operation& operation) {
  return validateTypes(subgraph, operation, kFloatTensors);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const BinaryParameters p, parseBinary(context));
  return context.setOutputDimensions(0, p.outputDimensions);
}

// Two's complement arithmetic that wraps.
template <typename T>
using Wrapping = std::make_unsigned_t<T>;

struct Add {
  static float apply(float a, float b) { return a + b; }
  template <typename T>
  static T applyInteger(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};

struct Sub {
  static float apply(float a, float b) { return a - b; }
  template <typename T>
  static T applyInteger(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
  }
};

struct Mul {
  static float apply(float a, float b) { return a * b; }
  template <typename T>
  static T applyInteger(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};

struct Div {
  static float apply(float a, float b) { return a / b; }
  template <typename T>
  static T applyInteger(T a, T b) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(a));  // the least value wraps
    const T quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }
};

struct TruncatedDiv {
  static float apply(float a, float b) { return a / b; }
  template <typename T>
  static T applyInteger(T a, T b) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(a));
    return a / b;
  }
};

struct FloorDiv {
  static float apply(float a, float b) { return std::floor(a / b); }
  template <typename T>
  static T applyInteger(T a, T b) {
    return Div::applyInteger(a, b);
  }
};

struct FloorMod {
  static float apply(float a, float b) {
    const float remainder = std::fmod(a, b);
    return remainder != 0.0f && (remainder < 0.0f) != (b < 0.0f) ? remainder + b : remainder;
  }
  template <typename T>
  static T applyInteger(T a, T b) {
    if (b == 0 || b == -1) return 0;
    const T remainder = a % b;
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
  }
};

struct Atan2 {
  static float apply(float a, float b) { return std::atan2(a, b); }
};

// NaN wins over any number.
struct Maximum {
  static float apply(float a, float b) { return a > b || std::isnan(a) ? a : b; }
  template <typename T>
  static T applyInteger(T a, T b) {
    return std::max(a, b);
  }
};

struct Minimum {
  static float apply(float a, float b) { return a < b || std::isnan(a) ? a : b; }
  template <typename T>
  static T applyInteger(T a, T b) {
    return std::min(a, b);
  }
};

struct Pow {
  static float apply(float a, float b) { return std::pow(a, b); }
  // A negative exponent gives the truncated real power: 0 but for bases of 1 and -1.
  template <typename T>
  static T applyInteger(T base, T exponent) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent % 2 == 0 ? 1 : -1;
      return 0;
    }
    Wrapping<T> result = 1;
    Wrapping<T> factor = static_cast<Wrapping<T>>(base);
    for (; exponent > 0; exponent >>= 1, factor *= factor) {
      if (exponent & 1) result *= factor;
    }
    return static_cast<T>(result);
  }
};

template <typename Function, typename T>
void computeIntegers(const OperationContext& context, const BinaryParameters& p) {
  const T* a = context.inputs[0].as<T>();
  const T* b = context.inputs[1].as<T>();
  T* output = context.outputs[0].as<T>();
  const ActivationRange range = activationRange(p.activation);
  const bool hasLowest = std::isfinite(range.lowest);
  const bool hasHighest = std::isfinite(range.highest);
  const T lowest = hasLowest ? static_cast<T>(range.lowest) : std::numeric_limits<T>::min();
  const T highest = hasHighest ? static_cast<T>(range.highest) : std::numeric_limits<T>::max();
  mapBroadcast(context, p.outputDimensions, a, b, output, [=](T x, T y) {
    return std::clamp(Function::template applyInteger<T>(x, y), lowest, highest);
  });
}

template <typename Function>
Status executeReal(OperationContext& context) {
  HEARTH_ASSIGN(const BinaryParameters p, parseBinary(context));
  const RealInput a(context.inputs[0]);
  const RealInput b(context.inputs[1]);
  RealOutput output(context.outputs[0]);
  const ActivationRange range = activationRange(p.activation);
  mapBroadcast(context, p.outputDimensions, a.data(), b.data(), output.data(),
               [&](float x, float y) { return range.apply(Function::apply(x, y)); });
  output.store();
  return {};
}

template <typename Function>
Status execute(OperationContext& context) {
  const OperandType type = context.outputs[0].type();
  if (type != OperandType::kTensorInt32 && type != OperandType::kTensorInt64)
    return executeReal<Function>(context);
  HEARTH_ASSIGN(const BinaryParameters p, parseBinary(context));
  if (type == OperandType::kTensorInt32)
    computeIntegers<Function, int32_t>(context, p);
  else
    computeIntegers<Function, int64_t>(context, p);
  return {};
}

// Of numbers of one scale and zero point the larger is the larger as it is stored.
template <typename Function>
Status executeSelecting(OperationContext& context) {
  const Tensor& output = context.outputs[0];
  const bool isOneScale = isSameQuantization(*context.inputs[0].operand, *output.operand) &&
                          isSameQuantization(*context.inputs[1].operand, *output.operand);
  if (!graph::isQuantized(output.type()) || !isOneScale) return execute<Function>(context);
  HEARTH_ASSIGN(const BinaryParameters p, parseBinary(context));
  return visitElementType(output.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    if constexpr (std::is_integral_v<T>)
      mapBroadcast(context, p.outputDimensions, context.inputs[0].as<T>(),
                   context.inputs[1].as<T>(), output.as<T>(),
                   [](T x, T y) { return Function::template applyInteger<T>(x, y); });
    return {};
  });
}

// A square is worth no call.
Status executePow(OperationContext& context) {
  const Tensor& exponent = context.inputs[1];
  if (exponent.type() != OperandType::kTensorFloat32 || exponent.elementCount() != 1 ||
      *exponent.as<float>() != 2.0f)
    return execute<Pow>(context);
  HEARTH_ASSIGN(const BinaryParameters p, parseBinary(context));
  mapBroadcast(context, p.outputDimensions, context.inputs[0].as<float>(), exponent.as<float>(),
               context.outputs[0].as<float>(), [](float base, float) { return base * base; });
  return {};
}

}  // namespace

Result<BinaryParameters> parseBinary(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  BinaryParameters p;
  if (hasActivation(context.operation->type)) {
    HEARTH_ASSIGN(p.activation, parseActivation(context, 2));
  }
  HEARTH_ASSIGN(p.outputDimensions, broadcastInputs(context, 0, 1));
  return p;
}

const OperationDefinition kAddOperation = {OperationType::kAdd, validateArithmetic, prepare,
                                           execute<Add>};
const OperationDefinition kAtan2Operation = {OperationType::kAtan2, validateAtan2, prepare,
                                             executeReal<Atan2>};
const OperationDefinition kDivOperation = {OperationType::kDiv, validateArithmetic, prepare,
                                           execute<Div>};
const OperationDefinition kFloorDivOperation = {OperationType::kFloorDiv, validateArithmetic,
                                                prepare, execute<FloorDiv>};
const OperationDefinition kFloorModOperation = {OperationType::kFloorMod, validateArithmetic,
                                                prepare, execute<FloorMod>};
const OperationDefinition kMaximumOperation = {OperationType::kMaximum, validateArithmetic, prepare,
                                               executeSelecting<Maximum>};
const OperationDefinition kMinimumOperation = {OperationType::kMinimum, validateArithmetic, prepare,
                                               executeSelecting<Minimum>};
const OperationDefinition kMulOperation = {OperationType::kMul, validateArithmetic, prepare,
                                           execute<Mul>};
const OperationDefinition kPowOperation = {OperationType::kPow, validatePow, prepare, executePow};
const OperationDefinition kTruncatedDivOperation = {
    OperationType::kTruncatedDiv, validateArithmetic, prepare, execute<TruncatedDiv>};
const OperationDefinition kSubOperation = {OperationType::kSub, validateArithmetic, prepare,
                                           execute<Sub>};

}  // namespace hearth::ops
