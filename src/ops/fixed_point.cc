// SPDX-License-Identifier: Apache-2.0
#include "ops/fixed_point.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/vector_dispatch.h"

namespace hearth::ops {
namespace {

// What functions over arrays compute for each element is inlined into their loops, which the
// compiler turns into vectors: it has no branches and no numbers wider than it needs.

constexpr int32_t kOneQ15 = 32767;  // the nearest to 1 that 15 fraction bits reach

HEARTH_INLINE inline int32_t saturate16(int32_t value) {
  return std::clamp<int32_t>(value, -32768, 32767);
}

// (a * b) / 2^31, halves upwards. Not both may be -2^31.
HEARTH_INLINE inline int32_t multiplyQ31(int64_t a, int64_t b) {
  const int64_t product = a * b;
  const int64_t half = product >= 0 ? int64_t{1} << 30 : 1 - (int64_t{1} << 30);
  return static_cast<int32_t>((product + half) / (int64_t{1} << 31));
}

HEARTH_INLINE inline int32_t shiftLeft(int64_t value, int count) {
  return static_cast<int32_t>(std::clamp<int64_t>(value * (int64_t{1} << count),
                                                  std::numeric_limits<int32_t>::min(),
                                                  std::numeric_limits<int32_t>::max()));
}

HEARTH_INLINE inline int32_t rounded(int32_t value, int exponent) {
  const auto mask = static_cast<int32_t>((uint32_t{1} << exponent) - 1);
  const int32_t threshold = (mask >> 1) + (value < 0 ? 1 : 0);
  return (value >> exponent) + ((value & mask) > threshold ? 1 : 0);
}

HEARTH_INLINE inline int32_t productQ15(int32_t a, int32_t b) {
  const int32_t product = a * b;
  const int32_t half = product >= 0 ? 1 << 14 : 1 - (1 << 14);
  return saturate16((product + half) / (1 << 15));
}

HEARTH_INLINE inline int32_t scaled(int32_t value, FixedMultiplier factor) {
  const int left = std::clamp(factor.shift, 0, 31);
  const int right = std::clamp(-factor.shift, 0, 31);
  return rounded(multiplyQ31(shiftLeft(value, left), factor.multiplier), right);
}

// exp(value) with 15 fraction bits for value <= 0 with `integerBits` integer bits: a polynomial
// around -1/8 for the part in [-1/4, 0), times a constant for each bit of the rest.
HEARTH_INLINE inline int32_t expOfNegative(int32_t value, int integerBits) {
  const int fractionBits = 15 - integerBits;
  const int32_t quarter = 1 << (fractionBits - 2);
  const int32_t part = (value & (quarter - 1)) - quarter;
  const int32_t x = part * (1 << integerBits) + (1 << 12);
  const int32_t x2 = productQ15(x, x);
  const int32_t x3 = productQ15(x2, x);
  const int32_t x4 = productQ15(x2, x2);
  constexpr int32_t kOneThird = 10923;
  constexpr int32_t kExpOfMinusEighth = 28918;
  const int32_t tail = rounded(productQ15(rounded(x4, 2) + x3, kOneThird) + x2, 1);
  int32_t result = saturate16(kExpOfMinusEighth + productQ15(kExpOfMinusEighth, x + tail));
  // exp(-1/4), exp(-1/2), exp(-1), exp(-2), exp(-4), exp(-8), exp(-16)
  constexpr int32_t kFactors[] = {25520, 19875, 12055, 4435, 600, 11, 0};
  const int32_t rest = part - value;
  // Bits of exponents that `value` does not have are 0 in `rest`, which is below 2^15.
#pragma GCC unroll 7
  for (int i = 0; i < 7; ++i)
    result = (rest & (1 << (fractionBits + i - 2))) != 0 ? productQ15(result, kFactors[i]) : result;
  if (integerBits > 5) result = value < -(1 << (fractionBits + 5)) ? 0 : result;
  return value == 0 ? kOneQ15 : result;
}

// 2 / (1 + value) with 13 fraction bits for value in [0, 1] with 15: three Newton steps from the
// line through 48/17 and 16/17.
HEARTH_INLINE inline int32_t twiceInverseOfOnePlus(int32_t value) {
  const int32_t half = (value + kOneQ15 + 1) / 2;
  constexpr int32_t k48Over17 = 23130;
  constexpr int32_t kMinus32Over17 = -15420;
  constexpr int32_t kOne = 1 << 13;
  int32_t x = k48Over17 + productQ15(half, kMinus32Over17);
#pragma GCC unroll 3
  for (int step = 0; step < 3; ++step)
    x += saturate16(productQ15(x, kOne - productQ15(half, x)) * 4);
  return x;
}

HEARTH_INLINE inline int16_t logisticOf(int32_t value) {
  const int32_t negative = value > 0 ? -value : value;
  const int32_t positiveResult = saturate16(twiceInverseOfOnePlus(expOfNegative(negative, 3)) * 2);
  const int32_t result = value > 0 ? positiveResult : kOneQ15 - positiveResult;
  return static_cast<int16_t>(value == 0 ? 1 << 14 : result);
}

HEARTH_INLINE inline int16_t tanhOf(int32_t value, int integerBits) {
  const int32_t negative = value > 0 ? -value : value;
  // tanh(v) = (1 - exp(-2v)) / (1 + exp(-2v)); counting one more integer bit doubles the argument.
  const int32_t x = twiceInverseOfOnePlus(expOfNegative(negative, integerBits + 1));
  const int32_t positiveResult = saturate16((x - (1 << 13)) * 4);
  const int32_t result = value > 0 ? positiveResult : -positiveResult;
  return static_cast<int16_t>(value == 0 ? 0 : result);
}

}  // namespace

int32_t multiplyQ15(int32_t a, int32_t b) {
  return productQ15(a, b);
}

FixedMultiplier toFixedMultiplier(double factor) {
  if (!(factor > 0.0)) return {};
  if (factor >= 0x1p30) return {std::numeric_limits<int32_t>::max(), 30};
  int shift = 0;
  int64_t mantissa = std::llround(std::frexp(factor, &shift) * 0x1p31);
  if (mantissa == int64_t{1} << 31) {
    mantissa /= 2;
    ++shift;
  }
  if (shift < -31) return {};
  return {static_cast<int32_t>(mantissa), shift};
}

int32_t multiply(int32_t value, FixedMultiplier factor) {
  return scaled(value, factor);
}

void multiplyEach(std::span<const int32_t> values, FixedMultiplier factor, int32_t* results) {
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < values.size(); ++i) results[i] = scaled(values[i], factor);
  });
}

int32_t multiplyWide(int64_t value, FixedMultiplier factor) {
  constexpr int32_t kMost = (1 << 15) - 1;
  const auto rounded = static_cast<int32_t>((int64_t{factor.multiplier} + (1 << 15)) >> 16);
  const int shift = std::clamp(15 - factor.shift, 1, 62);
  const auto product =
      static_cast<uint64_t>(value) * static_cast<uint64_t>(std::min(rounded, kMost));
  const auto shifted = static_cast<int64_t>(product + (uint64_t{1} << (shift - 1))) >> shift;
  // Where the result exceeds 32 bits TFLite wraps; here it saturates, and callers saturate it to
  // their type.
  return static_cast<int32_t>(std::clamp<int64_t>(shifted, std::numeric_limits<int32_t>::min(),
                                                  std::numeric_limits<int32_t>::max()));
}

FixedMultiplier inverseSquareRoot(int32_t value) {
  if (value <= 1) return {std::numeric_limits<int32_t>::max(), 0};
  int shift = 11;
  for (; value >= 1 << 29; value /= 4) ++shift;
  const int pairs = (std::countl_zero(static_cast<uint32_t>(value)) - 1) / 2 - 1;
  shift -= pairs;
  // Now in [1/4, 1) with 28 fraction bits.
  const int32_t half = divideByPowerOfTwo(value << (2 * pairs) >> 1, 1);
  constexpr int32_t kThreeHalves = 3 << 27;
  constexpr int32_t kHalfSquareRootOfTwo = 1518500250;
  int32_t x = 1 << 28;
  for (int step = 0; step < 5; ++step) {
    const int32_t cube = shiftLeft(multiplyQ31(multiplyQ31(x, x), x), 6);
    x = shiftLeft(multiplyQ31(kThreeHalves, x) - multiplyQ31(half, cube), 3);
  }
  x = multiplyQ31(x, kHalfSquareRootOfTwo);
  if (shift < 0) return {shiftLeft(x, -shift), 0};
  return {x, -shift};
}

int32_t divideByPowerOfTwo(int32_t value, int exponent) {
  return rounded(value, exponent);
}

int16_t logisticQ15(int16_t value) {
  return logisticOf(value);
}

void logisticQ15Each(std::span<const int16_t> values, int16_t* results) {
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < values.size(); ++i) results[i] = logisticOf(values[i]);
  });
}

int16_t tanhQ15(int16_t value, int integerBits) {
  return tanhOf(value, integerBits);
}

void tanhQ15Each(std::span<const int16_t> values, int integerBits, int16_t* results) {
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < values.size(); ++i) results[i] = tanhOf(values[i], integerBits);
  });
}

}  // namespace hearth::ops
