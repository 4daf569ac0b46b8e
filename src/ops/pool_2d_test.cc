// SPDX-License-Identifier: Apache-2.0
#include "ops/pool_2d.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

OperationBuilder pool(OperationType type, std::initializer_list<int32_t> parameters) {
  OperationBuilder builder(type);
  builder.input({1, 3, 3, 1}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9})
      .scalars(parameters)
      .output();
  return builder;
}

TEST(Pool2dTest, AverageLeavesPaddingOut) {
  OperationBuilder builder = pool(OperationType::kAveragePool2d, {1, 2, 2, 2, 2, 0});
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 2, 2, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(3.0f, 4.5f, 7.5f, 9.0f));
}

TEST(Pool2dTest, MaximumWithExplicitPadding) {
  OperationBuilder builder = pool(OperationType::kMaxPool2d, {1, 0, 0, 1, 1, 2, 2, 2, 0});
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 2, 3, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(4, 5, 6, 7, 8, 9));
}

TEST(Pool2dTest, FilterWidthComesFirst) {
  OperationBuilder builder = pool(OperationType::kMaxPool2d, {2, 1, 1, /*width=*/3, 1, 0});
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 3, 1, 1}));
  EXPECT_THAT(builder.result<float>(), ElementsAre(3, 6, 9));
}

TEST(Pool2dTest, RootMeanSquareAndActivation) {
  OperationBuilder builder = pool(OperationType::kL2Pool2d, {2, 1, 1, 2, 2, 3});
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(std::sqrt(11.5f), std::sqrt(18.5f), 6.0f, 6.0f));
}

TEST(Pool2dTest, NchwQuantized) {
  OperationBuilder builder(OperationType::kAveragePool2d);
  builder
      .input(OperationBuilder::tensor(OperandType::kTensorQuant8AsymmSigned, {1, 2, 1, 2}, 0.5f, 7),
             std::vector<int8_t>{-128, -127, 3, 4})
      .scalars({2, 1, 1, 2, 1, 0})
      .scalar(true)
      .output(OperationBuilder::tensor(OperandType::kTensorQuant8AsymmSigned, {}, 0.5f, 7));
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(), (Dimensions{1, 2, 1, 1}));
  // -127.5 and 3.5 are rounded away from zero, not from the zero point, as in TFLite.
  EXPECT_THAT(builder.result<int8_t>(), ElementsAre(-128, 4));
}

// Halves are rounded away from zero on either side of the zero point.
TEST(Pool2dTest, QuantizedHalves) {
  const auto pooled = [](OperandType type, int32_t zero, auto image) {
    using Element = typename decltype(image)::value_type;
    OperationBuilder builder(OperationType::kAveragePool2d);
    builder.input(OperationBuilder::tensor(type, {1, 1, 2, 2}, 0.5f, zero), image)
        .scalars({2, 1, 1, 2, 1, 0})
        .output(OperationBuilder::tensor(type, {}, 0.5f, zero));
    EXPECT_TRUE(builder.run());
    return builder.result<Element>();
  };
  for (const int32_t zero : {-128, -3, 0, 127})
    EXPECT_THAT(
        pooled(OperandType::kTensorQuant8AsymmSigned, zero, std::vector<int8_t>{-4, 5, -3, 8}),
        ElementsAre(-4, 7));
  for (const int32_t zero : {0, 7, 255})
    EXPECT_THAT(pooled(OperandType::kTensorQuant8Asymm, zero, std::vector<uint8_t>{2, 254, 3, 255}),
                ElementsAre(3, 255));
}

// The channels fill vectors, with a remainder. Means of six numbers are rounded half away from
// zero.
TEST(Pool2dTest, SymmetricIn16Bits) {
  const OperandType type = OperandType::kTensorQuant16Symm;
  std::mt19937 random(5);
  for (const uint32_t channels : {1u, 8u, 19u}) {
    for (const bool isNchw : {false, true}) {
      std::vector<int16_t> image(size_t{6} * channels);
      for (int16_t& value : image) value = static_cast<int16_t>(random());
      const auto at = [&](size_t pixel, size_t channel) {
        return image[isNchw ? channel * 6 + pixel : pixel * channels + channel];
      };
      const Dimensions shape =
          isNchw ? Dimensions{1, channels, 2, 3} : Dimensions{1, 2, 3, channels};
      for (const OperationType kind : {OperationType::kAveragePool2d, OperationType::kMaxPool2d}) {
        OperationBuilder builder(kind);
        builder.input(OperationBuilder::tensor(type, shape, 0x1p-13f), image)
            .scalars({2, 1, 1, 3, 2, 1})
            .scalar(isNchw)
            .output(OperationBuilder::tensor(type, {}, 0x1p-13f));
        ASSERT_TRUE(builder.run());
        const std::vector<int16_t> made = builder.result<int16_t>();
        ASSERT_EQ(made.size(), channels);
        for (size_t c = 0; c < channels; ++c) {
          double sum = 0.0;
          int16_t highest = INT16_MIN;
          for (size_t i = 0; i < 6; ++i) {
            sum += at(i, c);
            highest = std::max(highest, at(i, c));
          }
          const double expected = kind == OperationType::kMaxPool2d ? highest : std::round(sum / 6);
          EXPECT_EQ(made[c], std::max(expected, 0.0)) << c;
        }
      }
    }
  }
}

// Windows of few and of many pixels, with various numbers of channels.
TEST(Pool2dTest, FloatsOfManyChannels) {
  for (const uint32_t channels : {1u, 31u, 32u, 70u}) {
    for (const uint32_t width : {3u, 300u}) {
      std::vector<float> image(size_t{width} * channels);
      for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i * 37 % 101);
      for (const bool isSquared : {false, true}) {
        OperationBuilder builder(isSquared ? OperationType::kL2Pool2d
                                           : OperationType::kAveragePool2d);
        builder.input({1, 1, width, channels}, image)
            .scalars({2, 1, 1, static_cast<int32_t>(width), 1, 0})
            .output();
        ASSERT_TRUE(builder.run());
        for (size_t c = 0; c < channels; ++c) {
          double sum = 0.0;
          for (size_t x = 0; x < width; ++x) {
            const double value = image[x * channels + c];
            sum += isSquared ? value * value : value;
          }
          const double mean = sum / width;
          EXPECT_NEAR(builder.result<float>()[c], isSquared ? std::sqrt(mean) : mean, 1e-4);
        }
      }
    }
  }
}

TEST(Pool2dTest, MaximumKeepsNan) {
  OperationBuilder builder(OperationType::kMaxPool2d);
  builder.input({1, 1, 3, 1}, std::vector<float>{1.0f, NAN, 2.0f})
      .scalars({2, 1, 1, 3, 1, 0})
      .output();
  ASSERT_TRUE(builder.run());
  EXPECT_TRUE(std::isnan(builder.result<float>()[0]));
}

TEST(Pool2dTest, BadParameters) {
  const std::initializer_list<int32_t> lists[] = {
      {2, 1, 1, 0, 1, 0},
      {2, 1, 1, 1, -1, 0},
      {2, 1, 1, 4, 1, 0},
      {2, 0, 1, 1, 1, 0},
      {0, 1, 1, 1, 1, 0},
      {2, 1, 1, 1, 1, 9},
      {2, 0, 0, 0, 1, 1, 2, 2, 0},  // padding as large as the filter
      {INT32_MAX, INT32_MAX, 0, 0, 1, 1, INT32_MAX, 1, 0},
  };
  for (const auto& list : lists) {
    const Status status = pool(OperationType::kAveragePool2d, list).run();
    ASSERT_FALSE(status) << testing::PrintToString(std::vector<int32_t>(list));
    EXPECT_EQ(status.error().code(), ErrorCode::kBadData);
  }
}

TEST(Pool2dTest, QuantizationOfInputAndOutputIsTheSame) {
  OperationBuilder builder(OperationType::kMaxPool2d);
  builder
      .input(OperationBuilder::tensor(OperandType::kTensorQuant8Asymm, {1, 1, 1, 1}, 0.5f, 7),
             std::vector<uint8_t>{1})
      .scalars({2, 1, 1, 1, 1, 0})
      .output(OperationBuilder::tensor(OperandType::kTensorQuant8Asymm, {}, 0.25f, 7));
  EXPECT_FALSE(builder.validate());
}

}  // namespace
}  // namespace hearth::ops
