// SPDX-License-Identifier: Apache-2.0
// Functions of float32 numbers without calls and branches, so that compilers vectorize loops over
// them (see vector_dispatch.h). Unless stated otherwise, deviations are at most some units in the
// last place.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/vector_dispatch.h"

namespace hearth::cpu {

// The polynomial of x with these coefficients, the constant term first.
HEARTH_INLINE inline float polynomial(float, float last) {
  return last;
}
template <typename... Others>
HEARTH_INLINE inline float polynomial(float x, float first, Others... others) {
  return first + x * polynomial(x, others...);
}

// x = n ln 2 + r, where n is a whole number.
struct PowerOfE {
  float r;
  uint32_t shifted;  // n plus `added`, in the lowest bits

  // Rounds n, between -254 and 254, by adding a number so large that no bits remain for fractions.
  HEARTH_INLINE PowerOfE(float x, float added) {
    const float shift = 0x1.8p23f + added;
    const float sum = x * 1.44269504f + shift;
    const float n = sum - shift;
    // ln 2 in two parts, the first with few bits, so that n times it is exact.
    r = (x - n * 0.693145752f) - n * 1.42860682e-6f;
    shifted = std::bit_cast<uint32_t>(sum);
  }
  // (e^r - 1 - r) / r^2.
  HEARTH_INLINE float quotient() const {
    return polynomial(r, 0.499999886f, 0.166665185f, 4.16695331e-2f, 8.36891634e-3f,
                      1.37514079e-3f);
  }
};

// 2^(exponent - 127), for exponents from 1 to 254 in the lowest 8 bits. The next higher bit is 0.
HEARTH_INLINE inline float powerOfTwo(uint32_t exponent) {
  return std::bit_cast<float>(exponent << 23);
}

// e^x; 0 and infinity beyond the type's range, NaN for NaN.
HEARTH_INLINE inline float expVector(float x) {
  constexpr float kLowest = -104.0f;
  constexpr float kHighest = 89.0f;
  x = x < kLowest ? kLowest : x;
  x = x > kHighest ? kHighest : x;
  const PowerOfE power(x, 2 * 127.0f);
  const float value = power.quotient() * power.r * power.r + power.r + 1.0f;
  // Multiplies by 2^n in two factors, whose exponents are halves of n + 254, because results may be
  // subnormal and n may be 128. A NaN passes through `value`.
  const uint32_t half = power.shifted >> 1;
  return value * powerOfTwo(half) * powerOfTwo(power.shifted - half);
}

// The same for |x| <= kNearExponents, where 2^n is one normal number, to the last bit.
inline constexpr float kNearExponents = 87.0f;
HEARTH_INLINE inline float expNearVector(float x) {
  const PowerOfE power(x, 127.0f);
  const float value = power.quotient() * power.r * power.r + power.r + 1.0f;
  return value * powerOfTwo(power.shifted);
}

// e^x - 1 for x <= 0; NaN for NaN.
HEARTH_INLINE inline float expLessOneVector(float x) {
  constexpr float kLowest = -30.0f;  // below it the result is -1
  const PowerOfE power(x < kLowest ? kLowest : x, 127.0f);
  const float scale = powerOfTwo(power.shifted);
  const float value = power.quotient() * power.r * power.r + power.r;
  return value * scale + (scale - 1.0f);
}

// The lesser of a number that is not negative and `limit`; `limit` for NaN. It compares integers:
// where floats are compared, compilers may compute what follows for each outcome by itself, under
// masks.
HEARTH_INLINE inline float atMost(float x, float limit) {
  return std::bit_cast<float>(std::min(std::bit_cast<uint32_t>(x), std::bit_cast<uint32_t>(limit)));
}
// The number, or 0 if it is negative.
HEARTH_INLINE inline float atLeastZero(float x) {
  return std::bit_cast<float>(std::max(std::bit_cast<int32_t>(x), 0));
}

// -1, 0 or 1; NaN for NaN.
HEARTH_INLINE inline float signVector(float x) {
  const float positive = x > 0.0f ? 1.0f : x;
  const float either = x < 0.0f ? -1.0f : positive;
  return x == 0.0f ? 0.0f : either;
}

// The hyperbolic tangent, by a fitted quotient of polynomials; its magnitude never exceeds 1.
HEARTH_INLINE inline float tanhVector(float x) {
  constexpr float kFar = 10.0f;  // the quotient is clearly above 1 there
  const float square = atMost(x * x, kFar * kFar);
  const float value =
      x * polynomial(square, 1.0f, 0.133778706f, 3.49183916e-3f, 2.05472825e-5f, 1.32687275e-8f) /
      polynomial(square, 1.0f, 0.467111856f, 2.58627255e-2f, 3.27949965e-4f, 7.74145633e-7f);
  // In this order NaN passes through.
  return std::max(std::min(value, 1.0f), -1.0f);
}

// x times a cumulative function: x (1 / 2 + quotient(x^2) x) on [-far, far], and its limits, 0 or
// x, beyond. With the fitted quotients of polynomials below, deviations are below 1e-6, or some
// units in the last place where that is more.
template <typename Quotient>
HEARTH_INLINE inline float timesCumulative(float x, float far, const Quotient& quotient) {
  const float part = 0.5f + x * quotient(atMost(x * x, far * far));
  // Beyond `far`, `part` is below 0 or above 1; rounding may make it so before.
  const float value = x * atMost(atLeastZero(part), 1.0f);
  return x < -far ? -0.0f : value;
}

// x times the normal distribution's cumulative function.
HEARTH_INLINE inline float geluVector(float x) {
  return timesCumulative(x, 5.5f, [](float square) HEARTH_INLINE {
    return polynomial(square, 0.398942173f, 0.0340524614f, 4.69039241e-3f, 1.71026142e-4f,
                      6.38269876e-6f, 2.2681256e-8f) /
           polynomial(square, 1.0f, 0.252022326f, 0.0287627447f, 1.89658941e-3f, 7.44414065e-5f,
                      1.19783465e-6f);
  });
}

// GELU's approximation by a hyperbolic tangent.
HEARTH_INLINE inline float geluByTanhVector(float x) {
  return timesCumulative(x, 5.2f, [](float square) HEARTH_INLINE {
    return polynomial(square, 0.398942381f, 0.0300859455f, 3.62414285e-3f, 1.31407505e-4f,
                      7.10111635e-6f, 2.46984548e-8f) /
           polynomial(square, 1.0f, 0.242907107f, 0.0241955146f, 1.28827291e-3f, 7.5395059e-5f,
                      1.33832646e-6f);
  });
}

// x relu6(x + 3) / 6.
HEARTH_INLINE inline float hardSwishVector(float x) {
  return x * (1.0f / 6.0f) * std::min(std::max(x + 3.0f, 0.0f), 6.0f);
}

// For |x| <= kMostRadians deviations of sines and cosines are below 1e-6. For larger numbers, and
// for NaN, the results are meaningless.
inline constexpr float kMostRadians = 8192.0f;

// sin(x), or cos(x), computed from the distance to the nearest zero.
template <bool kIsCosine>
HEARTH_INLINE inline float sineVector(float x) {
  // x = middle * pi + r. Adding kShift rounds to whole half-waves; the lowest bit then tells
  // whether their number is odd.
  constexpr float kShift = 0x1.8p23f;
  const float shifted = x * 0.318309886f + (kIsCosine ? 0.5f : 0.0f) + kShift;
  const float middle = (shifted - kShift) - (kIsCosine ? 0.5f : 0.0f);
  // Subtracts pi in three parts, the first two with few bits.
  const float r =
      ((x - middle * 3.140625f) - middle * 9.675025939941406e-4f) - middle * 1.509958025e-7f;
  const float square = r * r;
  const float value =
      r + r * square *
              polynomial(square, -0.166666597f, 8.33308697e-3f, -1.98110502e-4f, 2.60878392e-6f);
  // Every second half-wave is negative.
  const uint32_t sign = std::bit_cast<uint32_t>(shifted) << 31;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ sign);
}

}  // namespace hearth::cpu
