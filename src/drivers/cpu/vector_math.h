// SPDX-License-Identifier: Apache-2.0
// Functions of float32 numbers without calls and branches, so that loops over them vectorise (see
// vector_dispatch.h). Deviations are at most some units in the last place unless said otherwise.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/vector_dispatch.h"

namespace hearth::cpu {

// The nearest integer, halves to even, for |x| < 2^22.
HEARTH_INLINE inline float roundVector(float x) {
  constexpr float kShift = 0x1.8p23f;  // no fraction bits are left above it
  return (x + kShift) - kShift;
}

// e^x; 0 and infinity beyond the type's range, NaN for NaN.
HEARTH_INLINE inline float expVector(float x) {
  constexpr float kLowest = -104.0f;
  constexpr float kHighest = 89.0f;
  x = x < kLowest ? kLowest : x;
  x = x > kHighest ? kHighest : x;
  const float n = roundVector(x * 1.44269504f);
  // ln 2 in two parts, the first with few bits, so that n times it is exact.
  const float r = (x - n * 0.693145752f) - n * 1.42860682e-6f;
  float p = 1.37514079e-3f;
  p = p * r + 8.36891634e-3f;
  p = p * r + 4.16695331e-2f;
  p = p * r + 0.166665185f;
  p = p * r + 0.499999886f;
  const float power = p * r * r + r + 1.0f;
  // 2^n in two factors: results may be subnormal, and n may be 128. A NaN passes through `power`.
  const int32_t whole = x == x ? static_cast<int32_t>(n) : 0;
  const int32_t half = whole >> 1;
  const auto powerOfTwo = [](int32_t exponent) HEARTH_INLINE {
    return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
  };
  return power * powerOfTwo(half) * powerOfTwo(whole - half);
}

// The polynomial of x with these coefficients, the constant one first.
HEARTH_INLINE inline float polynomial(float, float last) {
  return last;
}
template <typename... Others>
HEARTH_INLINE inline float polynomial(float x, float first, Others... others) {
  return first + x * polynomial(x, others...);
}

// x (1 / 2 + quotient(x^2) x) on [-far, far], and beyond it what that tends to: 0 or x. It is x
// times a cumulative function; with the quotients of polynomials below, which are fitted,
// deviations are below 1e-6, or some units in the last place where that is more.
template <typename Quotient>
HEARTH_INLINE inline float timesCumulative(float x, float far, const Quotient& quotient) {
  const float raised = x < -far ? -far : x;
  const float bounded = raised > far ? far : raised;
  const float part = 0.5f + bounded * quotient(bounded * bounded);
  // What rounding takes below 0 would turn the sign.
  const float value = x * (part < 0.0f ? 0.0f : part);
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

// The approximation of it by a hyperbolic tangent.
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
  const float shifted = x + 3.0f;
  const float raised = shifted < 0.0f ? 0.0f : shifted;
  return x * (1.0f / 6.0f) * (raised > 6.0f ? 6.0f : raised);
}

// For |x| <= kMostRadians the deviation of sines and cosines is below 1e-6; beyond it, and for NaN,
// the result means nothing.
inline constexpr float kMostRadians = 8192.0f;

// sin(x), or cos(x), by the distance from the nearest zero.
template <bool kIsCosine>
HEARTH_INLINE inline float sineVector(float x) {
  // x = middle * pi + r. Adding so much rounds to whole half-waves, and leaves whether their count
  // is odd in the lowest bit.
  constexpr float kShift = 0x1.8p23f;
  const float shifted = x * 0.318309886f + (kIsCosine ? 0.5f : 0.0f) + kShift;
  const float middle = (shifted - kShift) - (kIsCosine ? 0.5f : 0.0f);
  // pi in three parts, the first two with few bits.
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
