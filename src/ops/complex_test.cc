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

std::vector<Complex> combine(OperationType type, Dimensions leftShape, std::vector<Complex> left,
                             Dimensions rightShape, std::vector<Complex> right,
                             int32_t activation = 0) {
  OperationBuilder builder(type);
  builder.input(OperationBuilder::tensor(kComplex, std::move(leftShape)), std::move(left))
      .input(OperationBuilder::tensor(kComplex, std::move(rightShape)), std::move(right))
      .scalar(activation)
      .output(kComplex);
  return builder.run() ? builder.result<Complex>() : std::vector<Complex>();
}

TEST(ComplexArithmeticTest, CombinesBothParts) {
  const std::vector<Complex> left = {{1, 2}, {-3, 0.5f}};
  const std::vector<Complex> right = {{3, -1}, {0, 2}};
  EXPECT_THAT(combine(OperationType::kAdd, {2}, left, {2}, right),
              ElementsAre(Complex(4, 1), Complex(-3, 2.5f)));
  EXPECT_THAT(combine(OperationType::kSub, {2}, left, {2}, right),
              ElementsAre(Complex(-2, 3), Complex(-3, -1.5f)));
  EXPECT_THAT(combine(OperationType::kMul, {2}, left, {2}, right),
              ElementsAre(Complex(5, 5), Complex(-1, -6)));
  EXPECT_THAT(combine(OperationType::kDiv, {2}, left, {2}, {{1, 1}, {0, 2}}),
              ElementsAre(Complex(1.5f, 0.5f), Complex(0.25f, 1.5f)));
}

TEST(ComplexArithmeticTest, Broadcasts) {
  EXPECT_THAT(combine(OperationType::kMul, {2, 1}, {{0, 1}, {2, 0}}, {3}, {{1, 0}, {0, 1}, {1, 1}}),
              ElementsAre(Complex(0, 1), Complex(-1, 0), Complex(-1, 1), Complex(2, 0),
                          Complex(0, 2), Complex(2, 2)));
}

TEST(ComplexArithmeticTest, DividesFarNumbers) {
  EXPECT_THAT(combine(OperationType::kDiv, {2}, {{0x3p100f, 0x3p100f}, {0x1p-100f, 0}}, {2},
                      {{0x1p100f, 0x1p100f}, {0x1p-99f, 0}}),
              ElementsAre(Complex(3, 0), Complex(0.5f, 0)));
}

TEST(ComplexArithmeticTest, RefusesActivationsAndOtherOperations) {
  for (const int32_t activation : {1, 2, 3, 4, -1})
    EXPECT_THAT(combine(OperationType::kAdd, {1}, {1}, {1}, {1}, activation), ElementsAre());
  for (const OperationType type : {OperationType::kMaximum, OperationType::kFloorDiv,
                                   OperationType::kPow, OperationType::kSquaredDifference}) {
    OperationBuilder builder(type);
    builder.input(OperationBuilder::tensor(kComplex, {1}), std::vector<Complex>{1})
        .input(OperationBuilder::tensor(kComplex, {1}), std::vector<Complex>{1})
        .output(kComplex);
    EXPECT_FALSE(builder.validate()) << graph::nameOf(type);
  }
}

template <typename To, typename From>
std::vector<To> castTo(OperandType from, OperandType to, std::vector<From> values) {
  OperationBuilder builder(OperationType::kCast);
  const auto operand = [](OperandType type, Dimensions dimensions) {
    return OperationBuilder::tensor(type, std::move(dimensions),
                                    graph::isQuantized(type) ? 0.5f : 0.0f);
  };
  const auto count = static_cast<uint32_t>(values.size());
  builder.input(operand(from, {count}), std::move(values)).output(operand(to, {}));
  EXPECT_TRUE(builder.run());
  return builder.result<To>();
}

TEST(ComplexCastTest, TakesTheRealPart) {
  const std::vector<Complex> values = {{1.5f, 9}, {-2, 1}, {0, 3}};
  EXPECT_THAT(castTo<float>(kComplex, kFloat, values), ElementsAre(1.5f, -2, 0));
  EXPECT_THAT(castTo<double>(kComplex, OperandType::kTensorFloat64, values),
              ElementsAre(1.5, -2, 0));
  EXPECT_THAT(castTo<Half>(kComplex, OperandType::kTensorFloat16, values),
              ElementsAre(Half(1.5f), Half(-2.0f), Half(0.0f)));
  EXPECT_THAT(castTo<int32_t>(kComplex, kInt32, values), ElementsAre(1, -2, 0));
  EXPECT_THAT(castTo<uint8_t>(kComplex, kUint8, values), ElementsAre(1, 0, 0));
  EXPECT_THAT(castTo<uint8_t>(kComplex, kBool8, values), ElementsAre(1, 1, 0));
  EXPECT_THAT(castTo<Complex>(kComplex, kComplex, values), testing::ElementsAreArray(values));
}

TEST(ComplexCastTest, GivesTheImaginaryPartZero) {
  EXPECT_THAT(castTo<Complex>(kFloat, kComplex, std::vector<float>{1.5f, -INFINITY}),
              ElementsAre(Complex(1.5f, 0), Complex(-INFINITY, 0)));
  EXPECT_THAT(castTo<Complex>(kInt64, kComplex, std::vector<int64_t>{-7}),
              ElementsAre(Complex(-7, 0)));
  EXPECT_THAT(castTo<Complex>(kBool8, kComplex, std::vector<uint8_t>{1, 0}),
              ElementsAre(Complex(1, 0), Complex(0, 0)));
  EXPECT_THAT(castTo<Complex>(OperandType::kTensorFloat16, kComplex, std::vector<Half>{Half(2.5f)}),
              ElementsAre(Complex(2.5f, 0)));
}

// Operations that move elements take complex numbers like any other.
TEST(ComplexMovesTest, MoveBothParts) {
  const std::vector<Complex> values = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  const auto matrix = [&] {
    return OperationBuilder::tensor(kComplex, {2, 2});
  };
  OperationBuilder transpose(OperationType::kTranspose);
  transpose.input(matrix(), values).input({2}, std::vector<int32_t>{1, 0}).output(kComplex);
  ASSERT_TRUE(transpose.run());
  EXPECT_THAT(transpose.result<Complex>(), ElementsAre(values[0], values[2], values[1], values[3]));

  OperationBuilder slice(OperationType::kSlice);
  slice.input(matrix(), values)
      .input({2}, std::vector<int32_t>{0, 1})
      .input({2}, std::vector<int32_t>{2, 1})
      .output(kComplex);
  ASSERT_TRUE(slice.run());
  EXPECT_THAT(slice.result<Complex>(), ElementsAre(values[1], values[3]));

  OperationBuilder join(OperationType::kConcatenation);
  join.input(matrix(), values).input(matrix(), values).scalar(1).output(kComplex);
  ASSERT_TRUE(join.run());
  EXPECT_THAT(join.result<Complex>(), ElementsAre(values[0], values[1], values[0], values[1],
                                                  values[2], values[3], values[2], values[3]));

  OperationBuilder pack(OperationType::kPack);
  pack.scalar(1).input(matrix(), values).input(matrix(), values).output(kComplex);
  ASSERT_TRUE(pack.run());
  EXPECT_EQ(pack.dimensions(), (Dimensions{2, 2, 2}));

  OperationBuilder select(OperationType::kSelectV2);
  select.input(OperationBuilder::tensor(kBool8, {2}), std::vector<uint8_t>{1, 0})
      .input(matrix(), values)
      .input(OperationBuilder::tensor(kComplex, {1}), std::vector<Complex>{{0, -1}})
      .output(kComplex);
  ASSERT_TRUE(select.run());
  EXPECT_THAT(select.result<Complex>(),
              ElementsAre(values[0], Complex(0, -1), values[2], Complex(0, -1)));
}

}  // namespace
}  // namespace hearth::ops
