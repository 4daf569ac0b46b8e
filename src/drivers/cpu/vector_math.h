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

// x times the normal distribution's cumulative function.
HEARTH_INLINE inline float geluVector(float x) {
  const float z = std::fabs(x) * 0.707106781f;
  // erfc(z) = e^(-z^2) times a polynomial of 1 / (1 + z / 2), fitted on [0, 10].
  const float t = 1.0f / (1.0f + 0.5f * z);
  float p = -0.0601609983f;
  p = p * t + 0.289695948f;
  p = p * t - 0.497336239f;
  p = p * t + 0.289083093f;
  p = p * t - 0.0337826870f;
  p = p * t + 0.205519810f;
  p = p * t + 0.242439777f;
  p = p * t + 0.282459199f;
  p = p * t + 0.282082051f;
  const float tail = 0.5f * p * t * expVector(-0.5f * x * x);
  const float below = x < 0.0f ? tail : 1.0f - tail;
  // Nothing is left of the tail far out; 0 times an infinity is no number.
  return x < -20.0f ? -0.0f : x * below;
}

// The approximation of it by a hyperbolic tangent.
HEARTH_INLINE inline float geluByTanhVector(float x) {
  const float inner = 1.59576912f * (x + 0.044715f * x * x * x);  // twice sqrt(2 / pi)
  return x < -20.0f ? -0.0f : x / (1.0f + expVector(-inner));
}

// Sine and cosine share their reduction to an eighth of a turn around a multiple of a quarter. For
// |x| <= kMostRadians the deviation is below 1e-6; beyond it the result means nothing.
inline constexpr float kMostRadians = 8192.0f;

// sin(x + quarters * pi / 2).
HEARTH_INLINE inline float sineVector(float x, int32_t quarters) {
  const float n = roundVector(x * 0.636619772f);
  // pi / 2 in three parts, the first two with few bits.
  const float r = ((x - n * 1.5703125f) - n * 4.837512970e-4f) - n * 7.54978995e-8f;
  const float square = r * r;
  const float sine =
      r + r * square * ((-1.95159528e-4f * square + 8.33216576e-3f) * square - 0.166666547f);
  const float cosine =
      1.0f - 0.5f * square +
      square * square * ((2.44358517e-5f * square - 1.38873415e-3f) * square + 4.16666462e-2f);
  const int32_t quadrant = static_cast<int32_t>(n) + quarters;
  const float value = (quadrant & 1) != 0 ? cosine : sine;
  return (quadrant & 2) != 0 ? -value : value;
}

}  // namespace hearth::cpu
