// SPDX-License-Identifier: Apache-2.0
// CAST: numbers as they are stored, without scale and zero point.
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "ops/element_visitor.h"
#include "ops/reference/elements.h"
#include "ops/reference/kernels.h"

namespace hearth::ops::reference {
namespace {

// Real numbers are cut towards zero and saturate; NaN becomes 0.
template <typename To>
To cut(double value) {
  if (std::isnan(value)) return 0;
  // The greatest 64-bit integers are no doubles, so the comparison is with the next above.
  if (value >= static_cast<double>(std::numeric_limits<To>::max()))
    return std::numeric_limits<To>::max();
  if (value <= static_cast<double>(std::numeric_limits<To>::lowest()))
    return std::numeric_limits<To>::lowest();
  return static_cast<To>(value);
}

// Integers keep their lower bits, but NNAPI wants TENSOR_QUANT8_ASYMM to saturate.
template <typename To, typename From>
To convert(From value) {
  if constexpr (!std::is_integral_v<To>)
    return static_cast<To>(value);
  else if constexpr (!std::is_integral_v<From>)
    return cut<To>(static_cast<double>(value));
  else if constexpr (std::is_same_v<To, uint8_t>)
    return std::cmp_less(value, 0)        ? 0
           : std::cmp_greater(value, 255) ? 255
                                          : static_cast<To>(value);
  else
    return static_cast<To>(value);
}

// A complex number becomes its real part, a float32.
Status castFromComplex(const Tensor& input, const Tensor& output, int64_t count) {
  if (output.type() == OperandType::kTensorBool8) {
    for (int64_t i = 0; i < count; ++i)
      storeAs<uint8_t>(output, i, loadAs<float>(input, 2 * i) != 0 ? 1 : 0);
    return {};
  }
  return visitElementType(output.type(), [&]<typename To>(std::type_identity<To>) -> Status {
    for (int64_t i = 0; i < count; ++i)
      storeAs<To>(output, i, convert<To>(loadAs<float>(input, 2 * i)));
    return {};
  });
}

Status castToComplex(const Tensor& input, const Tensor& output, int64_t count) {
  return visitElementType(input.type(), [&]<typename From>(std::type_identity<From>) -> Status {
    for (int64_t i = 0; i < count; ++i) {
      storeAs(output, 2 * i, static_cast<float>(loadAs<From>(input, i)));
      storeAs(output, 2 * i + 1, 0.0f);
    }
    return {};
  });
}

}  // namespace

Status cast(const OperationContext& context) {
  const Tensor& input = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const int64_t count = countOf(output.dimensions);
  if (input.type() == output.type()) {
    for (int64_t i = 0; i < count; ++i) copyElement(input, i, output, i);
    return {};
  }
  if (input.type() == OperandType::kTensorComplex64) return castFromComplex(input, output, count);
  if (output.type() == OperandType::kTensorComplex64) return castToComplex(input, output, count);
  return visitElementType(input.type(), [&]<typename From>(std::type_identity<From>) -> Status {
    if (output.type() == OperandType::kTensorBool8) {
      for (int64_t i = 0; i < count; ++i)
        storeAs<uint8_t>(output, i, loadAs<From>(input, i) != static_cast<From>(0) ? 1 : 0);
      return {};
    }
    return visitElementType(output.type(), [&]<typename To>(std::type_identity<To>) -> Status {
      for (int64_t i = 0; i < count; ++i)
        storeAs<To>(output, i, convert<To>(loadAs<From>(input, i)));
      return {};
    });
  });
}

}  // namespace hearth::ops::reference
