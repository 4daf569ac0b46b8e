// SPDX-License-Identifier: Apache-2.0
// CAST of stored values: scale and zero point do not matter. A complex number becomes its real
// part; what becomes complex has the imaginary part 0.
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>

#include "base/vector_dispatch.h"
#include "ops/complex_number.h"
#include "ops/element_visitor.h"
#include "ops/half.h"
#include "ops/operation.h"
#include "ops/prepare.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kCastTensors = kMovableTensors | OperandType::kTensorQuant8SymmPerChannel;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  // A front end copies tensors of unknown shapes with it.
  if (signature.isInputOfType(0, OperandType::kTensorString))
    return signature.outputType(0, OperandType::kTensorString);
  HEARTH_TRY(signature.inputType(0, kCastTensors));
  return signature.outputType(0, kCastTensors);
}

template <typename T>
constexpr bool kIsReal =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Half>;

// Real numbers are cut towards zero and saturate, NaN becomes 0.
template <typename To>
To truncate(double value) {
  if (std::isnan(value)) return 0;
  // double has neither 2^63 - 1 nor 2^64 - 1: the limit is rounded up to the next power of two.
  if (value >= static_cast<double>(std::numeric_limits<To>::max()))
    return std::numeric_limits<To>::max();
  if (value <= static_cast<double>(std::numeric_limits<To>::min()))
    return std::numeric_limits<To>::min();
  return static_cast<To>(value);
}

// Integers wrap as in TFLite, except that NNAPI wants TENSOR_QUANT8_ASYMM to saturate.
template <typename To, typename From>
To convert(From value) {
  if constexpr (kIsReal<To>)
    return static_cast<To>(value);
  else if constexpr (kIsReal<From>)
    return truncate<To>(static_cast<double>(value));
  else if constexpr (std::is_same_v<To, uint8_t>)
    return std::cmp_less(value, 0)        ? 0
           : std::cmp_greater(value, 255) ? 255
                                          : static_cast<To>(value);
  else
    return static_cast<To>(value);
}

// The same for float32 to int32, the most frequent pair, without branches. Values are clamped to
// the greatest float below 2^31 before the conversion.
void truncateFloats(const float* source, int32_t* target, size_t count) {
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) {
      const float value = source[i];
      float bounded = value == value ? value : 0.0f;
      bounded = bounded < -0x1p31f ? -0x1p31f : bounded;
      bounded = bounded > 0x1.fffffep30f ? 0x1.fffffep30f : bounded;
      const int32_t whole = static_cast<int32_t>(bounded);
      target[i] = value >= 0x1p31f ? std::numeric_limits<int32_t>::max() : whole;
    }
  });
}

template <typename From>
Status castFrom(const Tensor& input, const Tensor& output, threads::ThreadPool* pool) {
  const uint64_t count = input.elementCount();
  const From* source = input.as<From>();
  const auto forParts = [&](const auto& convertPart) {
    threads::forRanges(pool, count, threads::grainOf(sizeof(From)), convertPart);
    return Status{};
  };
  if (output.type() == OperandType::kTensorBool8) {
    uint8_t* target = output.as<uint8_t>();
    return forParts([=](uint64_t begin, uint64_t end) {
      base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
        for (uint64_t i = begin; i < end; ++i) target[i] = source[i] != static_cast<From>(0);
      });
    });
  }
  return visitElementType(output.type(), [&]<typename To>(std::type_identity<To>) -> Status {
    To* target = output.as<To>();
    return forParts([=](uint64_t begin, uint64_t end) {
      if constexpr (std::is_same_v<From, float> && std::is_same_v<To, int32_t>)
        return truncateFloats(source + begin, target + begin, end - begin);
      if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>)
        return widenHalves(source + begin, end - begin, target + begin);
      if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>)
        return narrowFloats(source + begin, end - begin, target + begin);
      for (uint64_t i = begin; i < end; ++i) target[i] = convert<To>(source[i]);
    });
  });
}

// Conversions of elements one by one: `From` and `To` are types of the input's and the output's
// elements, of which convertOne() makes one of the other.
template <typename From, typename To, typename Function>
Status mapElements(const OperationContext& context, const Function& convertOne) {
  const From* source = context.inputs[0].as<From>();
  To* target = context.outputs[0].as<To>();
  threads::forRanges(context.threadPool, context.inputs[0].elementCount(),
                     threads::grainOf(sizeof(From)), [&](uint64_t begin, uint64_t end) {
                       for (uint64_t i = begin; i < end; ++i) target[i] = convertOne(source[i]);
                     });
  return {};
}

Status castFromComplex(const OperationContext& context) {
  const OperandType type = context.outputs[0].type();
  if (type == OperandType::kTensorBool8)
    return mapElements<ComplexNumber, uint8_t>(
        context, [](ComplexNumber number) -> uint8_t { return number.real != 0; });
  return visitElementType(type, [&]<typename To>(std::type_identity<To>) {
    return mapElements<ComplexNumber, To>(
        context, [](ComplexNumber number) { return convert<To>(number.real); });
  });
}

Status castToComplex(const OperationContext& context) {
  return visitElementType(context.inputs[0].type(), [&]<typename From>(std::type_identity<From>) {
    return mapElements<From, ComplexNumber>(
        context, [](From value) { return ComplexNumber{static_cast<float>(value), 0}; });
  });
}

Status execute(OperationContext& context) {
  const Tensor& input = context.inputs[0];
  const Tensor& output = context.outputs[0];
  if (input.type() == output.type()) {
    std::memcpy(output.data, input.data, input.elementCount() * graph::elementSize(input.type()));
    return {};
  }
  if (input.type() == OperandType::kTensorComplex64) return castFromComplex(context);
  if (output.type() == OperandType::kTensorComplex64) return castToComplex(context);
  return visitElementType(input.type(), [&]<typename From>(std::type_identity<From>) {
    return castFrom<From>(input, output, context.threadPool);
  });
}

}  // namespace

const OperationDefinition kCastOperation = {OperationType::kCast, validate, prepareLikeOnlyInput,
                                            execute};

}  // namespace hearth::ops
