// SPDX-License-Identifier: Apache-2.0
// Elements of TENSOR_COMPLEX64.
#pragma once

#include "base/vector_dispatch.h"

namespace hearth::ops {

// As it lies in memory. std::complex checks each product for NaN and infinity, which takes longer
// than the product.
struct ComplexNumber {
  float real = 0;
  float imaginary = 0;
};

// In double no product of two parts overflows, so that only the result may be infinite.
HEARTH_INLINE inline ComplexNumber productOf(ComplexNumber a, ComplexNumber b) {
  const double x = a.real;
  const double y = a.imaginary;
  const double u = b.real;
  const double v = b.imaginary;
  return {static_cast<float>(x * u - y * v), static_cast<float>(x * v + y * u)};
}

// In double the square of the divisor's magnitude neither overflows nor becomes 0. Division by 0
// gives infinities and NaN.
inline ComplexNumber quotientOf(ComplexNumber a, ComplexNumber b) {
  const double x = a.real;
  const double y = a.imaginary;
  const double u = b.real;
  const double v = b.imaginary;
  const double square = u * u + v * v;
  return {static_cast<float>((x * u + y * v) / square),
          static_cast<float>((y * u - x * v) / square)};
}

}  // namespace hearth::ops
