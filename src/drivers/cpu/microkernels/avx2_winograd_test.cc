// SPDX-License-Identifier: Apache-2.0
// The sums of convolutions after Winograd are exact, for the worst weights and inputs, too.
#include "drivers/cpu/microkernels/avx2_winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace hearth::cpu {
namespace {

constexpr size_t kOutputs = kWinogradSide * kWinogradSide;

// One tile, and what computes its outputs.
struct Sample {
  size_t channels = 16, columns = 16;
  bool isSigned = true;
  int32_t inputZero = 0, weightZero = 0;
  std::vector<uint8_t> weights, input;  // [columns][3][3][channels], [4][4][channels]

  Sample(size_t inputChannels, size_t outputChannels, bool areSigned)
      : channels(inputChannels),
        columns(outputChannels),
        isSigned(areSigned),
        weights(outputChannels * 9 * inputChannels),
        input(kWinogradPoints * inputChannels) {}

  int32_t numberOf(uint8_t value, int32_t zero) const {
    return (isSigned ? static_cast<int8_t>(value) : value) - zero;
  }
  int32_t sum(size_t column, size_t y, size_t x) const {
    int32_t sum = 0;
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j)
        for (size_t c = 0; c < channels; ++c)
          sum += numberOf(weights[((column * 3 + i) * 3 + j) * channels + c], weightZero) *
                 numberOf(input[((y + i) * kWinogradWindow + x + j) * channels + c], inputZero);
    return sum;
  }
};

class Avx2WinogradTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!hasAvx2Winograd(kWinogradChannels)) GTEST_SKIP() << "This CPU has no AVX2.";
  }

  // The outputs [4][columns] of the sample as the last of `tiles`, the others of which are zero.
  static std::vector<uint8_t> multiply(const Sample& sample, const std::vector<int32_t>& bias,
                                       const std::vector<float>& factors, int32_t outputZero,
                                       size_t tiles) {
    Avx2Winograd product;
    product.channels = sample.channels;
    product.columns = sample.columns;
    product.isSigned = sample.isSigned;
    product.outputZero = outputZero;
    product.lowest = sample.isSigned ? -128 : 0;
    product.highest = sample.isSigned ? 127 : 255;
    std::vector<uint8_t> packed(avx2WinogradBytes(product));
    packAvx2Winograd(product, sample.weights.data(), sample.weightZero, bias.data(), factors.data(),
                     packed.data());
    product.packed = packed.data();
    std::vector<int16_t> transformed(kWinogradPoints * tiles * sample.channels);
    std::array<const uint8_t*, kWinogradPoints> inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = sample.input.data() + i * sample.channels;
    transformAvx2Winograd(product, sample.inputZero, inputs.data(), tiles - 1, tiles,
                          transformed.data());
    std::vector<uint8_t> output(kOutputs * sample.columns);
    std::vector<uint8_t*> outputs(tiles * kOutputs, nullptr);
    for (size_t o = 0; o < kOutputs; ++o)
      outputs[(tiles - 1) * kOutputs + o] = output.data() + o * sample.columns;
    std::vector<uint8_t> scratch(avx2WinogradScratch());
    multiplyAvx2Winograd(product, transformed.data(), tiles, 0, product.panels(), outputs.data(),
                         scratch.data());
    return output;
  }

  static void expectExact(const Sample& sample, const std::vector<int32_t>& bias, float factor,
                          int32_t outputZero, size_t tiles) {
    const std::vector<uint8_t> output =
        multiply(sample, bias, std::vector<float>(sample.columns, factor), outputZero, tiles);
    for (size_t column = 0; column < sample.columns; ++column)
      for (size_t o = 0; o < kOutputs; ++o) {
        const float scaled =
            static_cast<float>(sample.sum(column, o / kWinogradSide, o % kWinogradSide) +
                               bias[column]) *
            factor;
        const int32_t steps = std::clamp(static_cast<int32_t>(std::nearbyint(scaled)) + outputZero,
                                         sample.isSigned ? -128 : 0, sample.isSigned ? 127 : 255);
        ASSERT_EQ(output[o * sample.columns + column], static_cast<uint8_t>(steps))
            << "column " << column << " output " << o;
      }
  }
};

TEST_F(Avx2WinogradTest, EqualsTheDefinition) {
  std::mt19937 random(5);
  for (const size_t channels : {16, 32, 112})
    for (const size_t columns : {1, 7, 16, 17, 40})
      for (const size_t tiles : {1, 2, 3, 6, 12, 13, 29})
        for (const bool isSigned : {true, false}) {
          Sample sample(channels, columns, isSigned);
          for (uint8_t& value : sample.weights) value = static_cast<uint8_t>(random());
          for (uint8_t& value : sample.input) value = static_cast<uint8_t>(random());
          sample.inputZero = static_cast<int32_t>(random() % 256) - (isSigned ? 128 : 0);
          sample.weightZero = isSigned ? 0 : static_cast<int32_t>(random() % 256);
          std::vector<int32_t> bias(columns);
          for (size_t column = 0; column < columns; ++column)
            // A middle output is within the range.
            bias[column] = static_cast<int32_t>(random() % 2001) - 1000 - sample.sum(column, 0, 1);
          expectExact(sample, bias, 0.0004f, isSigned ? -7 : 131, tiles);
        }
}

// Each weight and each input at one end of its range: as many signs as there are corners, and the
// most channels. With the negative sum as bias and a factor of 1, a result shows each wrong step.
TEST_F(Avx2WinogradTest, SumsOfExtremesAreExact) {
  std::mt19937 random(7);
  for (const bool isSigned : {true, false})
    for (const int32_t inputZero : {0, 127, 255})
      for (const int32_t weightZero : {0, 128, 255}) {
        if (isSigned && weightZero != 0) continue;
        Sample sample(kWinogradMostChannels, 48, isSigned);
        sample.inputZero = inputZero - (isSigned ? 128 : 0);
        sample.weightZero = weightZero;
        const uint8_t least = isSigned ? 0x80 : 0;
        const uint8_t most = isSigned ? 0x7f : 0xff;
        const size_t taps = 9;
        // The signs of a column's windows are the same in all channels, so that sums are largest.
        for (size_t i = 0; i < sample.weights.size(); ++i) {
          const size_t column = i / (taps * sample.channels);
          const size_t tap = i / sample.channels % taps;
          const bool isMost = column < 2 ? column == 0 : (column * 37 >> (tap % 6) & 1) != 0;
          sample.weights[i] = isMost ? most : least;
        }
        for (const int pattern : {0, 1, 2, 3}) {
          for (size_t i = 0; i < sample.input.size(); ++i) {
            const size_t point = i / sample.channels;
            const bool isMost = pattern == 0   ? true
                                : pattern == 1 ? false
                                : pattern == 2 ? (point + point / kWinogradWindow) % 2 == 0
                                               : (random() & 1) != 0;
            sample.input[i] = isMost ? most : least;
          }
          for (size_t o = 0; o < kOutputs; ++o) {
            std::vector<int32_t> bias(sample.columns);
            for (size_t column = 0; column < sample.columns; ++column)
              bias[column] = -sample.sum(column, o / kWinogradSide, o % kWinogradSide);
            const std::vector<uint8_t> output =
                multiply(sample, bias, std::vector<float>(sample.columns, 1.0f), 0, 2);
            for (size_t column = 0; column < sample.columns; ++column)
              ASSERT_EQ(output[o * sample.columns + column], 0)
                  << "column " << column << " output " << o;
          }
        }
      }
}

// Every pair of weights of a row, with the inputs at which the transformed numbers are largest.
TEST_F(Avx2WinogradTest, EveryPairOfWeights) {
  Sample sample(16, 256, true);
  sample.inputZero = 127;
  sample.input.assign(sample.input.size(), 0x80);
  for (int second = -128; second < 128; second += 5) {
    for (size_t column = 0; column < sample.columns; ++column)
      for (size_t tap = 0; tap < 9; ++tap)
        for (size_t c = 0; c < sample.channels; ++c)
          sample.weights[(column * 9 + tap) * sample.channels + c] =
              static_cast<uint8_t>(tap % 2 == 0 ? static_cast<int>(column) : second);
    std::vector<int32_t> bias(sample.columns);
    for (size_t column = 0; column < sample.columns; ++column)
      bias[column] = -sample.sum(column, 0, 0);
    expectExact(sample, bias, 1.0f, 0, 1);
  }
}

TEST_F(Avx2WinogradTest, ChannelsOutsideOfItsRange) {
  EXPECT_FALSE(hasAvx2Winograd(0));
  EXPECT_FALSE(hasAvx2Winograd(17));
  EXPECT_FALSE(hasAvx2Winograd(kWinogradMostChannels + kWinogradChannels));
}

}  // namespace
}  // namespace hearth::cpu
