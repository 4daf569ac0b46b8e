// SPDX-License-Identifier: Apache-2.0
// ADD, SUB, MUL and DIV (inputs: two tensors, activation), MAXIMUM, MINIMUM and POW (two tensors).
// Quantised inputs and the output may each have a quantisation of their own. Integer results wrap;
// integer division rounds towards negative infinity, and by zero it gives 0. TRUNCATED_DIV of the
// extension is DIV whose integer results are cut towards zero; FLOOR_DIV, FLOOR_MOD (the remainder
// has the divisor's sign), ATAN2 and SQUARED_DIFFERENCE take two tensors. ADD, SUB, MUL and DIV
// take TENSOR_COMPLEX64 as well, without an activation.
#include "ops/binary_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/vector_dispatch.h"
#include "ops/broadcast.h"
#include "ops/broadcast_rows.h"
#include "ops/complex_number.h"
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

Status validateTypes(const Signature& signature, TypeSet types) {
  HEARTH_TRY(signature.counts(hasActivation(signature.type()) ? 3 : 2, 1));
  HEARTH_TRY(signature.inputType(0, types));
  HEARTH_TRY(signature.inputTypeLike(1, 0));
  if (hasActivation(signature.type())) HEARTH_TRY(signature.inputType(2, OperandType::kInt32));
  return signature.outputTypeLike(0, 0);
}

Status validateArithmetic(const Signature& signature) {
  return validateTypes(signature, kArithmeticTensors);
}

Status validateComplexArithmetic(const Signature& signature) {
  return validateTypes(signature, kArithmeticTensors | OperandType::kTensorComplex64);
}

Status validatePow(const Signature& signature) {
  return validateTypes(signature, kFloatTensors | kIntegers);
}

Status validateAtan2(const Signature& signature) {
  return validateTypes(signature, kFloatTensors);
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
  HEARTH_INLINE static ComplexNumber applyComplex(ComplexNumber a, ComplexNumber b) {
    return {a.real + b.real, a.imaginary + b.imaginary};
  }
  template <typename T>
  static T applyInteger(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};

struct Sub {
  static float apply(float a, float b) { return a - b; }
  HEARTH_INLINE static ComplexNumber applyComplex(ComplexNumber a, ComplexNumber b) {
    return {a.real - b.real, a.imaginary - b.imaginary};
  }
  template <typename T>
  static T applyInteger(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
  }
};

struct Mul {
  static float apply(float a, float b) { return a * b; }
  HEARTH_INLINE static ComplexNumber applyComplex(ComplexNumber a, ComplexNumber b) {
    return productOf(a, b);
  }
  template <typename T>
  static T applyInteger(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};

// Quotients of 32-bit integers, computed in double, which vectorises. Rounding to double never
// turns a quotient into the next integer. Division by 0 or -1 gives 0 here; callers handle -1.
HEARTH_INLINE inline double quotientOf(int32_t a, int32_t b) {
  const bool isPlain = b != 0 && b != -1;
  return isPlain ? static_cast<double>(a) / static_cast<double>(isPlain ? b : 1) : 0.0;
}
HEARTH_INLINE inline int32_t negatedFor(int32_t a, int32_t b, int32_t quotient) {
  return b == -1 ? static_cast<int32_t>(0u - static_cast<uint32_t>(a)) : quotient;
}
HEARTH_INLINE inline int32_t truncatedQuotient(int32_t a, int32_t b) {
  return negatedFor(a, b, static_cast<int32_t>(quotientOf(a, b)));
}
HEARTH_INLINE inline int32_t floorQuotient(int32_t a, int32_t b) {
  const double quotient = quotientOf(a, b);
  const int32_t whole = static_cast<int32_t>(quotient);
  return negatedFor(a, b, whole - (quotient < static_cast<double>(whole) ? 1 : 0));
}

struct Div {
  static float apply(float a, float b) { return a / b; }
  static ComplexNumber applyComplex(ComplexNumber a, ComplexNumber b) { return quotientOf(a, b); }
  HEARTH_INLINE static int32_t applyInteger(int32_t a, int32_t b) { return floorQuotient(a, b); }
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
  HEARTH_INLINE static int32_t applyInteger(int32_t a, int32_t b) {
    return truncatedQuotient(a, b);
  }
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

// std::fmod(), but several times as fast where the quotient is small: there the division and the
// product are exact in double.
float remainderOf(float a, float b) {
  if (!(std::fabs(a) < std::fabs(b) * 0x1p29f) || std::isinf(b)) return std::fmod(a, b);
  const double dividend = a;
  const double divisor = b;
  const auto quotient = static_cast<double>(static_cast<int32_t>(dividend / divisor));
  return std::copysign(static_cast<float>(dividend - quotient * divisor), a);
}

struct FloorMod {
  static float apply(float a, float b) {
    const float remainder = remainderOf(a, b);
    // Signs are unpredictable, so this has no branches.
    const bool isOther = (remainder != 0.0f) & ((remainder < 0.0f) != (b < 0.0f));
    return isOther ? remainder + b : remainder;
  }
  HEARTH_INLINE static int32_t applyInteger(int32_t a, int32_t b) {
    const auto product = static_cast<uint32_t>(floorQuotient(a, b)) * static_cast<uint32_t>(b);
    return b == 0 ? 0 : static_cast<int32_t>(static_cast<uint32_t>(a) - product);
  }
  template <typename T>
  static T applyInteger(T a, T b) {
    if (b == 0 || b == -1) return 0;
    const T remainder = a % b;
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
  }
};

struct SquaredDifference {
  static float apply(float a, float b) { return (a - b) * (a - b); }
  template <typename T>
  static T applyInteger(T a, T b) {
    const Wrapping<T> difference = Wrapping<T>(a) - Wrapping<T>(b);
    return static_cast<T>(difference * difference);
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
  // A negative exponent gives the real power cut towards zero: 0, except for bases of 1 and -1.
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
  mapBroadcast(context, p.outputDimensions, a, b, output, [=](T x, T y) HEARTH_INLINE {
    return std::clamp(static_cast<T>(Function::applyInteger(x, y)), lowest, highest);
  });
}

template <typename Function>
constexpr bool kHasComplex =
    requires(ComplexNumber number) { Function::applyComplex(number, number); };

template <typename Function>
Status executeComplex(const OperationContext& context) {
  HEARTH_ASSIGN(const BinaryParameters p, parseBinary(context));
  mapBroadcast(context, p.outputDimensions, context.inputs[0].as<ComplexNumber>(),
               context.inputs[1].as<ComplexNumber>(), context.outputs[0].as<ComplexNumber>(),
               [](ComplexNumber a, ComplexNumber b)
                   HEARTH_INLINE { return Function::applyComplex(a, b); });
  return {};
}

template <typename Function>
Status executeReal(OperationContext& context) {
  HEARTH_ASSIGN(const BinaryParameters p, parseBinary(context));
  const RealInput a(context.inputs[0]);
  const RealInput b(context.inputs[1]);
  RealOutput output(context.outputs[0]);
  const ActivationRange range = activationRange(p.activation);
  mapBroadcast(context, p.outputDimensions, a.data(), b.data(), output.data(),
               [=](float x, float y) { return range.apply(Function::apply(x, y)); });
  output.store();
  return {};
}

template <typename Function>
constexpr bool kIsLinear =
    std::is_same_v<Function, Add> || std::is_same_v<Function, Sub> || std::is_same_v<Function, Mul>;

// Whether computeSymmetric16() can compute the operation: the scales must not be so far apart that
// a term, in steps of the output, could become infinite.
template <typename Function>
bool fitsSymmetric16(const OperationContext& context) {
  constexpr float kMostSteps = 0x1p60f;
  for (const Tensor* tensor : {&context.inputs[0], &context.inputs[1], &context.outputs[0]})
    if ((tensor->type() != OperandType::kTensorQuant16Symm &&
         tensor->type() != OperandType::kTensorInt16) ||
        !(tensor->operand->scale > 0.0f) || tensor->operand->zeroPoint != 0)
      return false;
  const float scale = context.outputs[0].operand->scale;
  const float a = context.inputs[0].operand->scale;
  const float b = context.inputs[1].operand->scale;
  if (std::is_same_v<Function, Mul>) return a * (b / scale) <= kMostSteps;
  return a / scale <= kMostSteps && b / scale <= kMostSteps;
}

// Sums, differences and products of 16-bit numbers without a zero point, in steps of the output.
// Within the output's range, float32 rounds these by no more than a few thousandths of a step.
template <typename Function>
void computeSymmetric16(const OperationContext& context, const BinaryParameters& p) {
  const graph::Operand& a = *context.inputs[0].operand;
  const graph::Operand& b = *context.inputs[1].operand;
  const graph::Operand& to = *context.outputs[0].operand;
  constexpr bool isProduct = std::is_same_v<Function, Mul>;
  const double scale = to.scale;
  const auto factorA = static_cast<float>(a.scale * (isProduct ? b.scale / scale : 1.0 / scale));
  const auto factorB = isProduct ? 1.0f : static_cast<float>(b.scale / scale);
  const QuantizedRange range = quantizedActivationRange(p.activation, to);
  const ActivationRange steps = {static_cast<float>(range.lowest),
                                 static_cast<float>(range.highest)};
  mapBroadcast(
      context, p.outputDimensions, context.inputs[0].as<int16_t>(), context.inputs[1].as<int16_t>(),
      context.outputs[0].as<int16_t>(), [=](int16_t x, int16_t y) HEARTH_INLINE {
        const float sum =
            Function::apply(static_cast<float>(x) * factorA, static_cast<float>(y) * factorB);
        return static_cast<int16_t>(roundSmall(steps.apply(sum)));
      });
}

template <typename Function>
Status execute(OperationContext& context) {
  const OperandType type = context.outputs[0].type();
  if constexpr (kHasComplex<Function>) {
    if (type == OperandType::kTensorComplex64) return executeComplex<Function>(context);
  }
  if constexpr (kIsLinear<Function>) {
    if (fitsSymmetric16<Function>(context)) {
      HEARTH_ASSIGN(const BinaryParameters p, parseBinary(context));
      computeSymmetric16<Function>(context, p);
      return {};
    }
  }
  if (type != OperandType::kTensorInt32 && type != OperandType::kTensorInt64)
    return executeReal<Function>(context);
  HEARTH_ASSIGN(const BinaryParameters p, parseBinary(context));
  if (type == OperandType::kTensorInt32)
    computeIntegers<Function, int32_t>(context, p);
  else
    computeIntegers<Function, int64_t>(context, p);
  return {};
}

// Squares of differences, in steps of the output and in float32. Rounding the difference first
// would change its square by several steps.
template <typename T>
void computeSquaredDifferences(const OperationContext& context, const BinaryParameters& p) {
  const graph::Operand& a = *context.inputs[0].operand;
  const graph::Operand& b = *context.inputs[1].operand;
  const graph::Operand& to = *context.outputs[0].operand;
  const double step = std::sqrt(static_cast<double>(to.scale));
  const auto factorA = static_cast<float>(a.scale / step);
  const auto factorB = static_cast<float>(b.scale / step);
  const auto zeroA = static_cast<float>(a.zeroPoint);
  const auto zeroB = static_cast<float>(b.zeroPoint);
  const auto zero = static_cast<float>(to.zeroPoint);
  const ActivationRange range = {static_cast<float>(std::numeric_limits<T>::min()),
                                 static_cast<float>(std::numeric_limits<T>::max())};
  mapBroadcast(context, p.outputDimensions, context.inputs[0].as<T>(), context.inputs[1].as<T>(),
               context.outputs[0].as<T>(), [=](T x, T y) HEARTH_INLINE {
                 const float difference = (static_cast<float>(x) - zeroA) * factorA -
                                          (static_cast<float>(y) - zeroB) * factorB;
                 return static_cast<T>(roundSmall(range.apply(difference * difference + zero)));
               });
}

Status executeSquaredDifference(OperationContext& context) {
  // With inputs further apart than this a term could become infinite, and the difference of two
  // such terms NaN.
  constexpr double kMostSteps = 0x1p60;
  const float scale = context.outputs[0].operand->scale;
  bool isNear = scale > 0.0f;
  for (const Tensor& input : context.inputs)
    isNear = isNear && input.operand->scale > 0.0f &&
             double{input.operand->scale} * input.operand->scale <= kMostSteps * scale;
  const OperandType type = context.outputs[0].type();
  const bool hasSteps = kQuant8Tensors.contains(type) || kSymmetric16.contains(type);
  if (!isNear || !hasSteps) return execute<SquaredDifference>(context);
  HEARTH_ASSIGN(const BinaryParameters p, parseBinary(context));
  return visitElementType(type, [&]<typename T>(std::type_identity<T>) -> Status {
    if constexpr (std::is_integral_v<T> && sizeof(T) <= sizeof(int16_t))
      computeSquaredDifferences<T>(context, p);
    return {};
  });
}

// Where all operands have one scale and zero point, stored values are compared: they have the same
// order as the real numbers.
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
                   [](T x, T y) HEARTH_INLINE { return Function::applyInteger(x, y); });
    return {};
  });
}

// An exponent of 2 is computed as a product, without a call of std::pow().
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
  if (context.inputs[0].type() == OperandType::kTensorComplex64 &&
      p.activation != FusedActivation::kNone)
    return fail(ErrorCode::kBadData, "{} has an activation, which complex numbers do not have.",
                context.describe());
  HEARTH_ASSIGN(p.outputDimensions, broadcastInputs(context, 0, 1));
  return p;
}

const OperationDefinition kAddOperation = {OperationType::kAdd, validateComplexArithmetic, prepare,
                                           execute<Add>};
const OperationDefinition kAtan2Operation = {OperationType::kAtan2, validateAtan2, prepare,
                                             executeReal<Atan2>};
const OperationDefinition kDivOperation = {OperationType::kDiv, validateComplexArithmetic, prepare,
                                           execute<Div>};
const OperationDefinition kFloorDivOperation = {OperationType::kFloorDiv, validateArithmetic,
                                                prepare, execute<FloorDiv>};
const OperationDefinition kFloorModOperation = {OperationType::kFloorMod, validateArithmetic,
                                                prepare, execute<FloorMod>};
const OperationDefinition kMaximumOperation = {OperationType::kMaximum, validateArithmetic, prepare,
                                               executeSelecting<Maximum>};
const OperationDefinition kMinimumOperation = {OperationType::kMinimum, validateArithmetic, prepare,
                                               executeSelecting<Minimum>};
const OperationDefinition kMulOperation = {OperationType::kMul, validateComplexArithmetic, prepare,
                                           execute<Mul>};
const OperationDefinition kPowOperation = {OperationType::kPow, validatePow, prepare, executePow};
const OperationDefinition kSquaredDifferenceOperation = {
    OperationType::kSquaredDifference, validateArithmetic, prepare, executeSquaredDifference};
const OperationDefinition kTruncatedDivOperation = {
    OperationType::kTruncatedDiv, validateArithmetic, prepare, execute<TruncatedDiv>};
const OperationDefinition kSubOperation = {OperationType::kSub, validateComplexArithmetic, prepare,
                                           execute<Sub>};

}  // namespace hearth::ops
