// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and the operations on complex numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using Complex = std::complex<float>;

constexpr OperandType kComplex = OperandType::kTensorComplex64;

std::vector<Complex> spectrumOf(Dimensions dimensions, std::vector<float> image, int32_t height,
                                int32_t width) {
  OperationBuilder builder(OperationType::kRfft2d);
  builder.input(std::move(dimensions), std::move(image))
      .input({2}, std::vector<int32_t>{height, width})
      .limitOutput(1 << 20)
      .output(kComplex);
  return builder.run() ? builder.result<Complex>() : std::vector<Complex>();
}

TEST(Rfft2dTest, KnownTransforms) {
  EXPECT_THAT(spectrumOf({1, 1}, {3}, 1, 1), ElementsAre(Complex(3)));
  EXPECT_THAT(spectrumOf({1, 2}, {3, 1}, 1, 2), ElementsAre(Complex(4), Complex(2)));
  EXPECT_THAT(spectrumOf({1, 4}, {1, 2, 3, 4}, 1, 4),
              ElementsAre(Complex(10), Complex(-2, 2), Complex(-2)));
  EXPECT_THAT(spectrumOf({2, 1}, {1, 5}, 2, 1), ElementsAre(Complex(6), Complex(-4)));
}

TEST(Rfft2dTest, CutsAndFillsUp) {
  EXPECT_THAT(spectrumOf({1, 3}, {1, 2, 100}, 1, 2), ElementsAre(Complex(3), Complex(-1)));
  EXPECT_THAT(spectrumOf({1, 1}, {1}, 2, 2),
              ElementsAre(Complex(1), Complex(1), Complex(1), Complex(1)));
  EXPECT_EQ(spectrumOf({1, 3}, {1, 2, 3}, 1, 4), spectrumOf({1, 4}, {1, 2, 3, 0}, 1, 4));
}

// The transform of a cosine has one frequency, in each of two images.
TEST(Rfft2dTest, FindsTheFrequency) {
  constexpr size_t kWidth = 512;
  std::vector<float> images(2 * kWidth);
  for (size_t i = 0; i < images.size(); ++i)
    images[i] = static_cast<float>(
        std::cos(2 * std::numbers::pi * 37 * static_cast<double>(i % kWidth) / kWidth));
  const std::vector<Complex> spectrum = spectrumOf({2, 1, kWidth}, images, 1, kWidth);
  ASSERT_EQ(spectrum.size(), 2 * (kWidth / 2 + 1));
  for (size_t i = 0; i < spectrum.size(); ++i)
    EXPECT_NEAR(std::abs(spectrum[i]), i % 257 == 37 ? 256 : 0, 1e-4) << i;
}

TEST(Rfft2dTest, AgreesWithItsDefinition) {
  for (const auto& [height, width] : {std::pair(8, 4), std::pair(4, 32), std::pair(16, 2)}) {
    std::vector<float> image(static_cast<size_t>(height * width));
    for (size_t i = 0; i < image.size(); ++i)
      image[i] = static_cast<float>(i * 7919 % 101) / 50 - 1;
    const Dimensions shape = {static_cast<uint32_t>(height), static_cast<uint32_t>(width)};
    const std::vector<Complex> spectrum = spectrumOf(shape, image, height, width);
    ASSERT_EQ(spectrum.size(), static_cast<size_t>(height * (width / 2 + 1)));
    for (int v = 0; v < height; ++v)
      for (int u = 0; u <= width / 2; ++u) {
        std::complex<double> sum = 0;
        for (int y = 0; y < height; ++y)
          for (int x = 0; x < width; ++x)
            sum += static_cast<double>(image[static_cast<size_t>(y * width + x)]) *
                   std::polar(1.0, -2 * std::numbers::pi *
                                       (static_cast<double>(v * y) / height +
                                        static_cast<double>(u * x) / width));
        const Complex found = spectrum[static_cast<size_t>(v * (width / 2 + 1) + u)];
        EXPECT_NEAR(found.real(), sum.real(), 1e-4);
        EXPECT_NEAR(found.imag(), sum.imag(), 1e-4);
      }
  }
}

TEST(Rfft2dTest, RefusesWhatDoesNotFit) {
  for (const int32_t length : {-4, 0, 3, 6, INT32_MAX, INT32_MIN, 1 << 30})
    EXPECT_THAT(spectrumOf({1, 4}, {1, 2, 3, 4}, 1, length), ElementsAre()) << length;
  EXPECT_THAT(spectrumOf({4}, {1, 2, 3, 4}, 1, 4), ElementsAre());
}

std::vector<float> partOf(OperationType type, std::vector<Complex> values) {
  OperationBuilder builder(type);
  const auto count = static_cast<uint32_t>(values.size());
  builder.input(OperationBuilder::tensor(kComplex, {count}), std::move(values)).output();
  return builder.run() ? builder.result<float>() : std::vector<float>();
}

TEST(ComplexPartsTest, Parts) {
  const std::vector<Complex> values = {{3, 4}, {-1, 0}, {0, -2}};
  EXPECT_THAT(partOf(OperationType::kReal, values), ElementsAre(3, -1, 0));
  EXPECT_THAT(partOf(OperationType::kImag, values), ElementsAre(4, 0, -2));
  EXPECT_THAT(partOf(OperationType::kComplexAbs, values), ElementsAre(5, 1, 2));
}

TEST(ComplexPartsTest, MagnitudesOfFarNumbers) {
  const std::vector<float> found =
      partOf(OperationType::kComplexAbs, {{3e38f, 0}, {3e-30f, 4e-30f}, {INFINITY, NAN}});
  EXPECT_THAT(found, ElementsAre(3e38f, testing::FloatEq(5e-30f), INFINITY));
}

}  // namespace
}  // namespace hearth::ops
