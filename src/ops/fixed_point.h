// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic whose roundings must be TFLite's to the last bit: LSTM state feeds back into
// itself, so that a difference of one step grows.
#pragma once

#include <cstdint>
#include <span>

namespace hearth::ops {

// A positive real factor as multiplier * 2^(shift - 31), multiplier in [2^30, 2^31).
struct FixedMultiplier {
  int32_t multiplier = 0;
  int32_t shift = 0;
};

// Zero, negative, NaN and factors below 2^-32 give 0; those of 2^30 and more give the largest.
FixedMultiplier toFixedMultiplier(double factor);

// value * factor, rounded twice: the high word of the doubled product is rounded, then the shift of
// it. Saturates.
int32_t multiply(int32_t value, FixedMultiplier factor);
// multiply() of each value. Here and below, results may be written over the values.
void multiplyEach(std::span<const int32_t> values, FixedMultiplier factor, int32_t* results);

// value * factor for |value| < 2^48, with 15 bits of the multiplier; halves upwards, saturates.
int32_t multiplyWide(int64_t value, FixedMultiplier factor);

// 1 / sqrt(value) for value >= 1, by Newton steps in 32 bits.
FixedMultiplier inverseSquareRoot(int32_t value);

// value / 2^exponent, halves away from zero. exponent in [0, 31].
int32_t divideByPowerOfTwo(int32_t value, int exponent);

// (a * b) / 2^15 of two 16-bit numbers, halves away from zero; saturates to 16 bits.
int32_t multiplyQ15(int32_t a, int32_t b);

// The logistic function of a number with 3 integer and 12 fraction bits; the result has 15
// fraction bits.
int16_t logisticQ15(int16_t value);
void logisticQ15Each(std::span<const int16_t> values, int16_t* results);

// tanh of a number with `integerBits` (0 to 6) integer bits; the result has 15 fraction bits.
int16_t tanhQ15(int16_t value, int integerBits);
void tanhQ15Each(std::span<const int16_t> values, int integerBits, int16_t* results);

}  // namespace hearth::ops
