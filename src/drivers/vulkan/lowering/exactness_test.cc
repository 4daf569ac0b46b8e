// SPDX-License-Identifier: Apache-2.0
// Quantised results are those of the reference kernels to the last bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "drivers/vulkan/testing/reference_test.h"
#include "hal/cts/model_builder.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;
using graph::OperationType;
using hal::cts::ModelBuilder;

class ExactnessTest : public ReferenceTest {
 protected:
  // Decimal scales: sums meet ties between two steps exactly.
  float scale() { return static_cast<float>(random_() % 40 + 1) * 0.05f; }
  int32_t zeroPoint(OperandType type) {
    const auto value = static_cast<int32_t>(random_() % 256);
    return type == OperandType::kTensorQuant8AsymmSigned ? value - 128 : value;
  }
};

constexpr OperandType kTypes[] = {OperandType::kTensorQuant8Asymm,
                                  OperandType::kTensorQuant8AsymmSigned};

bool isInteger(OperandType type) {
  return type != OperandType::kTensorFloat32 && type != OperandType::kTensorFloat16;
}

TEST_F(ExactnessTest, SumsOfProductsAreRoundedAsTheReferenceRoundsThem) {
  for (int round = 0; round < 40; ++round) {
    const OperandType type = kTypes[round % 2];
    constexpr uint32_t kRows = 64, kDepth = 5, kUnits = 40;
    const float data = scale();
    const float weight = scale();
    ModelBuilder builder;
    const uint32_t input = builder.input(type, {kRows, kDepth}, data, zeroPoint(type));
    const uint32_t weights =
        builder.constant(type, {kUnits, kDepth}, bytes(kUnits * kDepth), weight, zeroPoint(type));
    std::vector<int32_t> biases(kUnits);
    for (int32_t& bias : biases) bias = static_cast<int32_t>(random_() % 20001) - 10000;
    const uint32_t bias =
        builder.constant(OperandType::kTensorInt32, {kUnits}, biases, data * weight);
    const uint32_t activation = builder.scalar(int32_t{0});
    // Few sums saturate.
    const uint32_t output =
        builder.output(type, {kRows, kUnits}, data * weight * 997.0f, zeroPoint(type));
    builder.operation(OperationType::kFullyConnected, {input, weights, bias, activation}, {output});
    expectReference(builder, {bytes(kRows * kDepth)});
  }
}

TEST_F(ExactnessTest, SumsOfTwoTensorsAreThoseOfTheReference) {
  for (int round = 0; round < 10; ++round) {
    const OperandType type = kTypes[round % 2];
    ModelBuilder builder;
    const uint32_t left = builder.input(type, {64, 32}, scale(), zeroPoint(type));
    const uint32_t right = builder.input(type, {32}, scale(), zeroPoint(type));
    const uint32_t activation = builder.scalar(round % 4);
    const uint32_t output = builder.output(type, {64, 32}, scale(), zeroPoint(type));
    builder.operation(OperationType::kAdd, {left, right, activation}, {output});
    expectReference(builder, {bytes(64 * 32), bytes(32)});
  }
}

TEST_F(ExactnessTest, MeansOfWindowsAreThoseOfTheReference) {
  for (int round = 0; round < 10; ++round) {
    const OperandType type = kTypes[round % 2];
    const float step = scale();
    const int32_t zero = zeroPoint(type);
    ModelBuilder builder;
    const uint32_t input = builder.input(type, {1, 9, 11, 5}, step, zero);
    const uint32_t same = builder.scalar(int32_t{1});
    const uint32_t stride = builder.scalar(int32_t{1});
    const uint32_t width = builder.scalar(round % 3 + 2);
    const uint32_t height = builder.scalar(round % 4 + 1);
    const uint32_t activation = builder.scalar(round % 4);
    const uint32_t output = builder.output(type, {1, 9, 11, 5}, step, zero);
    builder.operation(OperationType::kAveragePool2d,
                      {input, same, stride, stride, width, height, activation}, {output});
    expectReference(builder, {bytes(9 * 11 * 5)});
  }
}

TEST_F(ExactnessTest, SoftmaxesAreThoseOfTheReference) {
  for (const uint32_t length : {2u, 10u, 512u, 1001u})
    for (const OperandType type : kTypes) {
      ModelBuilder builder;
      const uint32_t input = builder.input(type, {3, length}, scale() / 8, zeroPoint(type));
      const uint32_t output = builder.output(
          type, {3, length}, 1.0f / 256, type == OperandType::kTensorQuant8AsymmSigned ? -128 : 0);
      builder.operation(OperationType::kSoftmax, {input, builder.scalar(0.75f)}, {output});
      std::vector<uint8_t> values = bytes(size_t{3} * length);
      // Where all are equal, 512 of them are half a step each.
      std::fill_n(values.begin(), length, uint8_t{77});
      // Few of different sizes make results that are neither 0 nor 1.
      for (uint32_t i = 0; i < length; ++i) values[length + i] = static_cast<uint8_t>(200 + i % 5);
      expectReference(builder, {values});
    }
}

TEST_F(ExactnessTest, MeansAndSumsAreThoseOfTheReference) {
  for (int round = 0; round < 12; ++round) {
    const OperandType type = kTypes[round % 2];
    const bool isMean = round % 3 != 0;
    ModelBuilder builder;
    const uint32_t input = builder.input(type, {2, 7, 6, 30}, scale(), zeroPoint(type));
    const std::vector<int32_t> axes = {1, 2};
    const uint32_t reduced = builder.constant(OperandType::kTensorInt32, {2}, axes);
    const uint32_t output = builder.output(type, {2, 30}, scale(), zeroPoint(type));
    builder.operation(isMean ? OperationType::kMean : OperationType::kReduceSum,
                      {input, reduced, isMean ? builder.scalar(int32_t{0}) : builder.scalar(false)},
                      {output});
    expectReference(builder, {bytes(2 * 7 * 6 * 30)});
  }
}

TEST_F(ExactnessTest, QuantizedRealsAreThoseOfTheReference) {
  for (int round = 0; round < 6; ++round) {
    const OperandType type = kTypes[round % 2];
    const float step = scale();
    const int32_t zero = zeroPoint(type);
    // Numbers of all sizes, NaN among them, and halves of steps with their neighbours.
    std::vector<float> values(500);
    const std::vector<uint8_t> any = bytes(values.size() * sizeof(float));
    std::memcpy(values.data(), any.data(), any.size());
    for (int i = -300; i < 300; ++i) {
      const float half = (static_cast<float>(i) + 0.5f) * step;
      for (const float towards : {-1e9f, half, 1e9f})
        values.push_back(std::nextafter(half, towards));
    }
    ModelBuilder builder;
    const auto count = static_cast<uint32_t>(values.size());
    const uint32_t input = builder.input(OperandType::kTensorFloat32, {count});
    const uint32_t output = builder.output(type, {count}, step, zero);
    builder.operation(OperationType::kQuantize, {input}, {output});
    std::vector<uint8_t> stored(values.size() * sizeof(float));
    std::memcpy(stored.data(), values.data(), stored.size());
    expectReference(builder, {stored});
  }
}

TEST_F(ExactnessTest, ResizedImagesAreThoseOfTheReference) {
  for (const OperationType operation :
       {OperationType::kResizeBilinear, OperationType::kResizeNearestNeighbor})
    for (const auto& [alignCorners, halfPixelCenters, size] :
         {std::tuple(false, false, 10), std::tuple(true, false, 9), std::tuple(false, true, 20)})
      for (const OperandType type : kTypes) {
        ModelBuilder builder;
        const float step = scale();
        const int32_t zero = zeroPoint(type);
        const auto side = static_cast<uint32_t>(size);
        const uint32_t input = builder.input(type, {2, 5, 5, 3}, step, zero);
        const uint32_t output = builder.output(type, {2, side, side, 3}, step, zero);
        builder.operation(operation,
                          {input, builder.scalar(size), builder.scalar(size), builder.scalar(false),
                           builder.scalar(alignCorners), builder.scalar(halfPixelCenters)},
                          {output});
        expectReference(builder, {bytes(2 * 5 * 5 * 3)});
      }
}

TEST_F(ExactnessTest, WeightsThatAreNoPowersOfTwoAreLeftToOthers) {
  ModelBuilder builder;
  const uint32_t input = builder.input(kTypes[0], {1, 5, 5, 3}, 0.5f, 3);
  const uint32_t output = builder.output(kTypes[0], {1, 15, 15, 3}, 0.5f, 3);
  builder.operation(OperationType::kResizeBilinear,
                    {input, builder.scalar(int32_t{15}), builder.scalar(int32_t{15})}, {output});
  const auto supported = device_->supportedOperations(builder.model());
  ASSERT_TRUE(supported);
  EXPECT_FALSE(supported->front().supported);
  EXPECT_NE(supported->front().reason.find("no multiples of 1/2048"), std::string::npos)
      << supported->front().reason;
}

TEST_F(ExactnessTest, TransposedConvolutionsAreThoseOfTheReference) {
  for (int round = 0; round < 8; ++round) {
    const OperandType type = kTypes[round % 2];
    const int32_t stride = round % 3 + 1;
    const uint32_t side = 5 * static_cast<uint32_t>(stride);
    const float data = scale();
    const float weight = scale();
    ModelBuilder builder;
    const uint32_t input = builder.input(type, {2, 5, 5, 4}, data, zeroPoint(type));
    const uint32_t filter =
        builder.constant(type, {3, 3, 3, 4}, bytes(3 * 3 * 3 * 4), weight, zeroPoint(type));
    const std::vector<int32_t> biases = {-500, 0, 700};
    const uint32_t bias = builder.constant(OperandType::kTensorInt32, {3}, biases, data * weight);
    const std::vector<int32_t> shape = {2, static_cast<int32_t>(side), static_cast<int32_t>(side),
                                        3};
    const uint32_t dimensions = builder.constant(OperandType::kTensorInt32, {4}, shape);
    const uint32_t output =
        builder.output(type, {2, side, side, 3}, data * weight * 997.0f, zeroPoint(type));
    builder.operation(
        OperationType::kTransposeConv2d,
        {input, filter, bias, dimensions, builder.scalar(int32_t{1}), builder.scalar(stride),
         builder.scalar(stride), builder.scalar(round % 4), builder.scalar(false)},
        {output});
    expectReference(builder, {bytes(2 * 5 * 5 * 4)});
  }
}

TEST_F(ExactnessTest, TensorsOfDifferentScalesAreConcatenatedAsTheReferenceDoes) {
  for (const OperandType type : kTypes) {
    ModelBuilder builder;
    const uint32_t left = builder.input(type, {4, 30}, scale(), zeroPoint(type));
    const uint32_t right = builder.input(type, {4, 50}, scale(), zeroPoint(type));
    const uint32_t output = builder.output(type, {4, 80}, scale(), zeroPoint(type));
    builder.operation(OperationType::kConcatenation, {left, right, builder.scalar(int32_t{1})},
                      {output});
    expectReference(builder, {bytes(4 * 30), bytes(4 * 50)});
  }
}

TEST_F(ExactnessTest, TensorsArePackedAndRepeatedAsTheReferenceDoes) {
  for (const int32_t axis : {0, 1, 2}) {
    ModelBuilder builder;
    const OperandType type = kTypes[1];
    std::vector<uint32_t> tensors = {builder.scalar(axis)};
    for (int i = 0; i < 3; ++i) tensors.push_back(builder.input(type, {5, 7}, 0.5f, 3));
    graph::Dimensions dimensions = {5, 7};
    dimensions.insert(dimensions.begin() + axis, 3);
    builder.operation(OperationType::kPack, tensors, {builder.output(type, dimensions, 0.5f, 3)});
    expectReference(builder, {bytes(5 * 7), bytes(5 * 7), bytes(5 * 7)});
  }
  ModelBuilder builder;
  const uint32_t input = builder.input(kTypes[0], {5, 1, 7}, 0.5f, 3);
  const std::vector<int32_t> shape = {2, 5, 4, 7};
  builder.operation(OperationType::kBroadcastTo,
                    {input, builder.constant(OperandType::kTensorInt32, {4}, shape)},
                    {builder.output(kTypes[0], {2, 5, 4, 7}, 0.5f, 3)});
  expectReference(builder, {bytes(5 * 7)});
}

TEST_F(ExactnessTest, BlocksOfPaddedImagesBecomeBatchesAsTheReferenceDoes) {
  for (const bool isNchw : {false, true}) {
    ModelBuilder builder;
    const auto shapeOf = [&](uint32_t batches, uint32_t height, uint32_t width) {
      return isNchw ? graph::Dimensions{batches, 3, height, width}
                    : graph::Dimensions{batches, height, width, 3};
    };
    const uint32_t input = builder.input(kTypes[0], shapeOf(2, 7, 5), 0.5f, 3);
    const std::vector<int32_t> block = {2, 3};
    // More rows in front than a block has, and columns that lie in the padding altogether.
    const std::vector<int32_t> padding = {3, 2, 0, 4};
    const uint32_t output = builder.output(kTypes[0], shapeOf(12, 6, 3), 0.5f, 3);
    builder.operation(
        OperationType::kSpaceToBatchNd,
        {input, builder.constant(OperandType::kTensorInt32, {2}, block),
         builder.constant(OperandType::kTensorInt32, {2, 2}, padding), builder.scalar(isNchw)},
        {output});
    expectReference(builder, {bytes(2 * 7 * 5 * 3)});
  }
}

TEST_F(ExactnessTest, PlacesOfExtremesAreThoseOfTheReference) {
  for (const OperationType operation : {OperationType::kArgmax, OperationType::kArgmin64})
    for (const int32_t axis : {0, 1, 2}) {
      const bool isWide = operation == OperationType::kArgmin64;
      ModelBuilder builder;
      const uint32_t input = builder.input(kTypes[1], {9, 7, 30}, 0.5f, 3);
      graph::Dimensions dimensions = {9, 7, 30};
      dimensions.erase(dimensions.begin() + axis);
      const uint32_t output = builder.output(
          isWide ? OperandType::kTensorInt64 : OperandType::kTensorInt32, dimensions);
      builder.operation(operation, {input, builder.scalar(axis)}, {output});
      expectReference(builder, {bytes(9 * 7 * 30)});
    }
}

TEST_F(ExactnessTest, NumbersOfDifferentScalesAreComparedAsTheReferenceDoes) {
  for (const OperationType operation :
       {OperationType::kEqual, OperationType::kNotEqual, OperationType::kLess,
        OperationType::kLessEqual, OperationType::kGreater, OperationType::kGreaterEqual}) {
    ModelBuilder builder;
    const uint32_t left = builder.input(kTypes[0], {40, 20}, 0.5f, 3);
    const uint32_t right = builder.input(kTypes[0], {20}, 0.25f, 100);
    builder.operation(operation, {left, right},
                      {builder.output(OperandType::kTensorBool8, {40, 20})});
    expectReference(builder, {bytes(40 * 20), bytes(20)});
  }
}

TEST_F(ExactnessTest, ProductsOfQuantisedMatricesAreThoseOfTheReference) {
  for (int round = 0; round < 8; ++round) {
    const OperandType type = kTypes[round % 2];
    const bool isLeftTransposed = round / 2 % 2 != 0;
    const bool isRightTransposed = round / 4 % 2 != 0;
    const float left = scale();
    const float right = scale();
    ModelBuilder builder;
    const uint32_t a = builder.input(
        type, isLeftTransposed ? graph::Dimensions{3, 1, 19, 37} : graph::Dimensions{3, 1, 37, 19},
        left, zeroPoint(type));
    const uint32_t b = builder.input(
        type, isRightTransposed ? graph::Dimensions{2, 41, 19} : graph::Dimensions{2, 19, 41},
        right, zeroPoint(type));
    const uint32_t output =
        builder.output(type, {3, 2, 37, 41}, left * right * 997.0f, zeroPoint(type));
    builder.operation(OperationType::kBatchMatmul,
                      {a, b, builder.scalar(isLeftTransposed), builder.scalar(isRightTransposed)},
                      {output});
    expectReference(builder, {bytes(3 * 37 * 19), bytes(2 * 19 * 41)});
  }
}

TEST_F(ExactnessTest, RowsOfLengthOneAreThoseOfTheReference) {
  for (const OperandType type : kTypes)
    for (const auto& [axis, length] : {std::pair(0, 300u), std::pair(1, 5u), std::pair(2, 130u)}) {
      graph::Dimensions dimensions = {3, 4, 2};
      dimensions[static_cast<size_t>(axis)] = length;
      ModelBuilder builder;
      const uint32_t input = builder.input(type, dimensions, scale(), zeroPoint(type));
      const uint32_t output = builder.output(type, dimensions, 1.0f / 128,
                                             type == OperandType::kTensorQuant8Asymm ? 128 : 0);
      builder.operation(OperationType::kL2Normalization, {input, builder.scalar(axis)}, {output});
      expectReference(builder, {bytes(size_t{dimensions[0]} * dimensions[1] * dimensions[2])});
    }
}

TEST_F(ExactnessTest, ChoicesBetweenTensorsOfDifferentScalesAreThoseOfTheReference) {
  for (const OperandType type : kTypes) {
    ModelBuilder builder;
    const uint32_t condition = builder.input(OperandType::kTensorBool8, {40});
    const uint32_t left = builder.input(type, {40}, scale(), zeroPoint(type));
    const uint32_t right = builder.input(type, {40}, scale(), zeroPoint(type));
    builder.operation(OperationType::kSelect, {condition, left, right},
                      {builder.output(type, {40}, scale(), zeroPoint(type))});
    std::vector<uint8_t> conditions = bytes(40);
    for (uint8_t& each : conditions) each %= 2;
    expectReference(builder, {conditions, bytes(40), bytes(40)});
  }
}

TEST_F(ExactnessTest, NumbersAreCastAsTheReferenceDoes) {
  constexpr OperandType kCast[] = {OperandType::kTensorFloat32,
                                   OperandType::kTensorFloat16,
                                   OperandType::kTensorInt32,
                                   OperandType::kTensorQuant8Asymm,
                                   OperandType::kTensorQuant8AsymmSigned,
                                   OperandType::kTensorBool8};
  for (const OperandType from : kCast)
    for (const OperandType to : kCast) {
      ModelBuilder builder;
      const bool isByte = graph::elementSize(from) == 1;
      const uint32_t input = builder.input(from, {301}, graph::isQuantized(from) ? 0.5f : 0.0f);
      const uint32_t output = builder.output(to, {301}, graph::isQuantized(to) ? 0.5f : 0.0f);
      builder.operation(OperationType::kCast, {input}, {output});
      // Any bits are numbers of all sizes. NaN has no bits that must be kept, so none is cast to a
      // real number.
      std::vector<uint8_t> values = bytes(301 * graph::elementSize(from));
      if (from == OperandType::kTensorBool8)
        for (uint8_t& value : values) value %= 2;
      // The upper bits of an exponent.
      if (!isByte && from != OperandType::kTensorInt32 && !isInteger(to))
        for (size_t i = graph::elementSize(from) - 1; i < values.size();
             i += graph::elementSize(from))
          values[i] &= 0xbf;
      expectReference(builder, {values});
    }
}

}  // namespace
}  // namespace hearth::vulkan
