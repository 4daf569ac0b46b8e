// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/padded_input.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace hearth::cpu {
namespace {

// Two images of 3 x 4 pixels with 2 channels under windows of 2 x 3 pixels.
Convolution geometry() {
  Convolution g;
  g.batch = 2;
  g.inputHeight = 3;
  g.inputWidth = 4;
  g.groupInputChannels = 2;
  g.kernelHeight = 2;
  g.kernelWidth = 3;
  g.strideHeight = 1;
  g.strideWidth = 2;
  g.dilationHeight = 2;
  g.top = 1;
  g.left = 1;
  g.outputHeight = 3;
  g.outputWidth = 2;
  return g;
}

TEST(PaddedInputTest, WindowsHaveTheInputsAndThePaddingUnderThem) {
  const Convolution g = geometry();
  const auto input = PaddedInput::make(g, -5, 1000);
  ASSERT_TRUE(input);
  std::vector<int8_t> source(g.batch * g.inputHeight * g.inputWidth * g.groupInputChannels);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<int8_t>(i * 5);
  std::vector<uint8_t> padded(input->bytes());
  input->fill(source.data(), 0, input->lines(), padded.data());
  std::vector<const uint8_t*> windows(g.batch * g.outputHeight * g.outputWidth);
  input->findWindows(padded.data(), 0, 1, windows.data());
  input->findWindows(padded.data(), 1, windows.size() - 1, windows.data() + 1);
  ASSERT_EQ(input->places().size(), 6u);
  for (size_t w = 0; w < windows.size(); ++w) {
    const size_t image = w / 6;
    const size_t firstY = w / 2 % 3;
    const size_t firstX = w % 2 * 2;
    for (size_t place = 0; place < 6; ++place) {
      const auto y = static_cast<int64_t>(firstY + place / 3 * 2) - 1;
      const auto x = static_cast<int64_t>(firstX + place % 3) - 1;
      for (int64_t channel = 0; channel < 2; ++channel) {
        const bool isInside = y >= 0 && y < 3 && x >= 0 && x < 4;
        const int64_t at = ((static_cast<int64_t>(image) * 3 + y) * 4 + x) * 2 + channel;
        const int expected = (isInside ? source[static_cast<size_t>(at)] : -5) + 128;
        EXPECT_EQ(windows[w][input->places()[place] + static_cast<size_t>(channel)], expected)
            << "window " << w << ", place " << place;
      }
    }
  }
}

TEST(PaddedInputTest, InputsThatAreTooLargeAreNotPadded) {
  // Each image has 5 x 5 pixels with its padding.
  EXPECT_TRUE(PaddedInput::make(geometry(), 0, 100));
  EXPECT_FALSE(PaddedInput::make(geometry(), 0, 99));
  Convolution g = geometry();
  g.kernelHeight = g.kernelWidth = g.dilationHeight = g.dilationWidth = UINT32_MAX;
  EXPECT_FALSE(PaddedInput::make(g, 0, SIZE_MAX));
}

}  // namespace
}  // namespace hearth::cpu
