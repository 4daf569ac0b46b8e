// SPDX-License-Identifier: Apache-2.0
// The sums of convolutions after Winograd are exact, for the worst weights and inputs, too.
#include "drivers/cpu/microkernels/x86/avx2/avx2_winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace hearth::cpu {
namespace {

// The most channels of products with tiles of this side.
size_t mostChannels(size_t side) {
  return side == 2 ? 512 : 224;
}

// One tile, and what computes its outputs.
struct Sample {
  size_t side = 2, channels = 16, columns = 16;
  bool isSigned = true;
  int32_t inputZero = 0, weightZero = 0;
  // [columns][3][3][channels], [side + 2][side + 2][channels]
  std::vector<uint8_t> weights, input;

  Sample(size_t tileSide, size_t inputChannels, size_t outputChannels, bool areSigned)
      : side(tileSide),
        channels(inputChannels),
        columns(outputChannels),
        isSigned(areSigned),
        weights(outputChannels * 9 * inputChannels),
        input((tileSide + 2) * (tileSide + 2) * inputChannels) {}

  size_t outputs() const { return side * side; }
  int32_t numberOf(uint8_t value, int32_t zero) const {
    return (isSigned ? static_cast<int8_t>(value) : value) - zero;
  }
  int32_t sum(size_t column, size_t y, size_t x) const {
    int32_t sum = 0;
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j)
        for (size_t c = 0; c < channels; ++c)
          sum += numberOf(weights[((column * 3 + i) * 3 + j) * channels + c], weightZero) *
                 numberOf(input[((y + i) * (side + 2) + x + j) * channels + c], inputZero);
    return sum;
  }
  // That of an output.
  int32_t sum(size_t column, size_t output) const {
    return sum(column, output / side, output % side);
  }
};

class Avx2WinogradTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!hasAvx2Winograd(2, kWinogradChannels, true)) GTEST_SKIP() << "This CPU has no AVX2.";
  }

  // The outputs [side][side][columns] of the sample as the last of `tiles`, the others of which are
  // zero.
  static std::vector<uint8_t> multiply(const Sample& sample, const std::vector<int32_t>& bias,
                                       const std::vector<float>& factors, int32_t outputZero,
                                       size_t tiles) {
    Avx2Winograd product;
    product.side = sample.side;
    product.channels = sample.channels;
    product.columns = sample.columns;
    product.isSigned = sample.isSigned;
    product.outputZero = outputZero;
    product.lowest = sample.isSigned ? -128 : 0;
    product.highest = sample.isSigned ? 127 : 255;
    std::vector<uint8_t> packed(avx2WinogradBytes(product));
    packAvx2Winograd(product, sample.weights.data(), sample.weightZero, sample.inputZero,
                     bias.data(), factors.data(), packed.data());
    product.packed = packed.data();
    std::vector<int16_t> transformed(product.points() * tiles * sample.channels);
    std::array<const uint8_t*, kWinogradMostPoints> inputs;
    for (size_t i = 0; i < product.points(); ++i)
      inputs[i] = sample.input.data() + i * sample.channels;
    transformAvx2Winograd(product, sample.inputZero, inputs.data(), tiles - 1, tiles,
                          transformed.data());
    std::vector<uint8_t> output(sample.outputs() * sample.columns);
    std::vector<uint8_t*> outputs(tiles * sample.outputs(), nullptr);
    for (size_t o = 0; o < sample.outputs(); ++o)
      outputs[(tiles - 1) * sample.outputs() + o] = output.data() + o * sample.columns;
    std::vector<uint8_t> scratch(avx2WinogradScratch(product));
    multiplyAvx2Winograd(product, transformed.data(), tiles, 0, product.panels(), outputs.data(),
                         scratch.data());
    return output;
  }

  static void expectExact(const Sample& sample, const std::vector<int32_t>& bias, float factor,
                          int32_t outputZero, size_t tiles) {
    const std::vector<uint8_t> output =
        multiply(sample, bias, std::vector<float>(sample.columns, factor), outputZero, tiles);
    for (size_t column = 0; column < sample.columns; ++column)
      for (size_t o = 0; o < sample.outputs(); ++o) {
        const float scaled = static_cast<float>(sample.sum(column, o) + bias[column]) * factor;
        const int32_t steps = std::clamp(static_cast<int32_t>(std::nearbyint(scaled)) + outputZero,
                                         sample.isSigned ? -128 : 0, sample.isSigned ? 127 : 255);
        ASSERT_EQ(output[o * sample.columns + column], static_cast<uint8_t>(steps))
            << "column " << column << " output " << o;
      }
  }
};

// Products with tiles of a side, and whether numbers are int8.
struct Form {
  size_t side;
  bool isSigned;
};
constexpr Form kForms[] = {{2, true}, {2, false}, {4, true}};

TEST_F(Avx2WinogradTest, EqualsTheDefinition) {
  std::mt19937 random(5);
  for (const auto [side, isSigned] : kForms)
    for (const size_t channels : {16, 32, 112})
      for (const size_t columns : {1, 7, 16, 17, 40})
        for (const size_t tiles : {1, 2, 3, 6, 12, 13, 29}) {
          Sample sample(side, channels, columns, isSigned);
          for (uint8_t& value : sample.weights) value = static_cast<uint8_t>(random());
          for (uint8_t& value : sample.input) value = static_cast<uint8_t>(random());
          sample.inputZero = static_cast<int32_t>(random() % 256) - (isSigned ? 128 : 0);
          sample.weightZero = isSigned ? 0 : static_cast<int32_t>(random() % 256);
          std::vector<int32_t> bias(columns);
          for (size_t column = 0; column < columns; ++column)
            // A middle output is within the range.
            bias[column] = static_cast<int32_t>(random() % 2001) - 1000 - sample.sum(column, 1);
          expectExact(sample, bias, 0.0004f, isSigned ? -7 : 131, tiles);
        }
}

// Each weight and each input at one end of its range: as many signs as there are corners, and the
// most channels. With the negative sum as bias and a factor of 1, a result shows each wrong step.
TEST_F(Avx2WinogradTest, SumsOfExtremesAreExact) {
  std::mt19937 random(7);
  for (const auto [side, isSigned] : kForms)
    for (const int32_t inputZero : {0, 127, 255})
      for (const int32_t weightZero : {0, 128, 255}) {
        if (isSigned && weightZero != 0) continue;
        Sample sample(side, mostChannels(side), 48, isSigned);
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
        for (const int pattern : {0, 1, 2, 3, 4}) {
          for (size_t i = 0; i < sample.input.size(); ++i) {
            const size_t point = i / sample.channels;
            // In the last pattern the points of a window have the signs of a column's weights.
            const size_t tap = point / (side + 2) % 3 * 3 + point % (side + 2) % 3;
            const bool isMost = pattern == 0   ? true
                                : pattern == 1 ? false
                                : pattern == 2 ? (point + point / (side + 2)) % 2 == 0
                                : pattern == 3 ? (random() & 1) != 0
                                               : (5 * 37 >> (tap % 6) & 1) != 0;
            sample.input[i] = isMost ? most : least;
          }
          for (size_t o = 0; o < sample.outputs(); ++o) {
            std::vector<int32_t> bias(sample.columns);
            for (size_t column = 0; column < sample.columns; ++column)
              bias[column] = -sample.sum(column, o);
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
  for (const size_t side : {2, 4}) {
    Sample sample(side, 16, 256, true);
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
        bias[column] = -sample.sum(column, 0);
      expectExact(sample, bias, 1.0f, 0, 1);
    }
  }
}

// Each input of a tile alone at one end of its range and the others at the other end.
TEST_F(Avx2WinogradTest, EachInputAndWeightAlone) {
  for (const auto [side, isSigned] : kForms)
    for (const bool isLarge : {false, true}) {
      Sample sample(side, 16, 9, isSigned);
      const uint8_t least = isSigned ? 0x80 : 0;
      const uint8_t most = isSigned ? 0x7f : 0xff;
      for (size_t i = 0; i < sample.weights.size(); ++i) {
        const bool isAlone = i / (9 * sample.channels) == i / sample.channels % 9;
        sample.weights[i] = isAlone == isLarge ? most : least;
      }
      const size_t points = (side + 2) * (side + 2);
      for (size_t point = 0; point < points; ++point) {
        for (size_t i = 0; i < sample.input.size(); ++i)
          sample.input[i] = (i / sample.channels == point) == isLarge ? most : least;
        for (size_t o = 0; o < sample.outputs(); ++o) {
          std::vector<int32_t> bias(sample.columns);
          for (size_t column = 0; column < sample.columns; ++column)
            bias[column] = -sample.sum(column, o);
          expectExact(sample, bias, 1.0f, 0, 1);
        }
      }
    }
}

TEST_F(Avx2WinogradTest, ChannelsOutsideOfItsRange) {
  for (const size_t side : {2, 4}) {
    EXPECT_TRUE(hasAvx2Winograd(side, mostChannels(side), true));
    for (const size_t channels : {size_t{0}, size_t{17}, mostChannels(side) + kWinogradChannels})
      EXPECT_FALSE(hasAvx2Winograd(side, channels, true)) << channels;
  }
  EXPECT_FALSE(hasAvx2Winograd(4, kWinogradChannels, false));
}

}  // namespace
}  // namespace hearth::cpu
