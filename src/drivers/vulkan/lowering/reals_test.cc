// SPDX-License-Identifier: Apache-2.0
// Results of real numbers are near those of the reference kernels.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/vulkan/testing/reference_test.h"
#include "hal/cts/model_builder.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;
using graph::OperationType;
using hal::cts::ModelBuilder;

constexpr OperandType kReal = OperandType::kTensorFloat32;
constexpr float kTolerance = 1e-5f;

using RealsTest = ReferenceTest;

std::vector<uint8_t> bytesOf(const std::vector<int32_t>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(int32_t));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST_F(RealsTest, HybridLayersRoundEachRowOfTheirData) {
  constexpr uint32_t kRows = 7, kDepth = 83, kUnits = 40;
  for (const bool hasChannels : {false, true}) {
    ModelBuilder builder;
    const uint32_t input = builder.input(kReal, {kRows, kDepth});
    const uint32_t weights = builder.constant(
        hasChannels ? OperandType::kTensorQuant8Symm : OperandType::kTensorQuant8AsymmSigned,
        {kUnits, kDepth}, bytes(kUnits * kDepth), 0.01f, hasChannels ? 0 : 3);
    const uint32_t bias = builder.constant(kReal, {kUnits}, std::vector<float>(kUnits, 0.25f));
    const uint32_t output = builder.output(kReal, {kRows, kUnits});
    builder.operation(OperationType::kFullyConnected,
                      {input, weights, bias, builder.scalar(int32_t{1})}, {output});
    std::vector<uint8_t> values = reals(kRows * kDepth);
    std::memset(values.data(), 0, kDepth * sizeof(float));  // the first row
    expectNearReference(builder, {values}, kTolerance);
  }
}

TEST_F(RealsTest, HybridConvolutionsRoundEachImage) {
  ModelBuilder builder;
  const uint32_t input = builder.input(kReal, {2, 6, 6, 5});
  const uint32_t filter = builder.constant(OperandType::kTensorQuant8AsymmSigned, {8, 3, 3, 5},
                                           bytes(8 * 3 * 3 * 5), 0.02f, 0);
  const uint32_t bias = builder.constant(kReal, {8}, std::vector<float>(8, -1.0f));
  const uint32_t one = builder.scalar(int32_t{1});
  const uint32_t output = builder.output(kReal, {2, 6, 6, 8});
  builder.operation(OperationType::kConv2d,
                    {input, filter, bias, one, one, one, builder.scalar(int32_t{0})}, {output});
  expectNearReference(builder, {reals(2 * 6 * 6 * 5)}, kTolerance);
}

TEST_F(RealsTest, ProductsOfMatricesAreBroadcast) {
  ModelBuilder builder;
  const uint32_t left = builder.input(kReal, {2, 1, 3, 33, 20});
  const uint32_t right = builder.input(kReal, {4, 1, 20, 35});
  const uint32_t none = builder.scalar(false);
  builder.operation(OperationType::kBatchMatmul, {left, right, none, none},
                    {builder.output(kReal, {2, 4, 3, 33, 35})});
  expectNearReference(builder, {reals(2 * 3 * 33 * 20), reals(4 * 20 * 35)}, kTolerance);
}

TEST_F(RealsTest, HeadsOfAnAttentionShareKeys) {
  for (const float cap : {0.0f, 1.5f})
    for (const bool hasMask : {false, true}) {
      ModelBuilder builder;
      const uint32_t queries = builder.input(kReal, {2, 5, 6, 16});
      const uint32_t keys = builder.input(kReal, {2, 70, 2, 16});
      const uint32_t values = builder.input(kReal, {2, 70, 2, 12});
      const uint32_t mask = hasMask ? builder.input(kReal, {5, 70}) : builder.omitted(kReal);
      builder.operation(OperationType::kScaledDotProductAttention,
                        {queries, keys, values, mask, builder.scalar(0.25f), builder.scalar(cap)},
                        {builder.output(kReal, {2, 5, 6, 12})});
      std::vector<std::vector<uint8_t>> inputs = {reals(2 * 5 * 6 * 16), reals(2 * 70 * 2 * 16),
                                                  reals(2 * 70 * 2 * 12)};
      if (hasMask) inputs.push_back(reals(5 * 70));
      expectNearReference(builder, inputs, kTolerance);
    }
}

TEST_F(RealsTest, RowsAndGroupsAreNormalised) {
  const std::vector<float> scales = {1.0f, -2.0f, 0.5f, 3.0f, 1.5f, 0.25f};
  {
    ModelBuilder builder;
    const uint32_t input = builder.input(kReal, {5, 7, 6});
    builder.operation(OperationType::kRmsNorm,
                      {input, builder.constant(kReal, {6}, scales), builder.scalar(1e-3f)},
                      {builder.output(kReal, {5, 7, 6})});
    expectNearReference(builder, {reals(5 * 7 * 6)}, kTolerance);
  }
  for (const auto& [axis, groups] : {std::pair(3, 2), std::pair(1, 3), std::pair(3, 1)}) {
    ModelBuilder builder;
    const graph::Dimensions shape =
        axis == 3 ? graph::Dimensions{2, 5, 9, 6} : graph::Dimensions{2, 6, 5, 9};
    const uint32_t input = builder.input(kReal, shape);
    builder.operation(OperationType::kGroupNorm,
                      {input, builder.constant(kReal, {6}, scales), builder.omitted(kReal),
                       builder.scalar(1e-3f), builder.scalar(groups), builder.scalar(axis)},
                      {builder.output(kReal, shape)});
    expectNearReference(builder, {reals(2 * 5 * 9 * 6)}, kTolerance);
  }
}

TEST_F(RealsTest, BothFormsOfGeluAreNear) {
  for (const bool isByTanh : {false, true}) {
    ModelBuilder builder;
    const uint32_t input = builder.input(kReal, {500});
    builder.operation(OperationType::kGelu, {input, builder.scalar(isByTanh)},
                      {builder.output(kReal, {500})});
    expectNearReference(builder, {reals(500)}, kTolerance);
  }
}

TEST_F(RealsTest, GeluOfNegativeNumbersKeepsItsDigits) {
  std::vector<float> values;
  for (int i = 0; i < 100; ++i) values.push_back(-2.0f - 0.04f * static_cast<float>(i));
  std::vector<uint8_t> input(values.size() * sizeof(float));
  std::memcpy(input.data(), values.data(), input.size());
  ModelBuilder builder;
  builder.operation(OperationType::kGelu, {builder.input(kReal, {100}), builder.scalar(false)},
                    {builder.output(kReal, {100})});
  expectNearReference(builder, {input}, 5e-8f);
}

TEST_F(RealsTest, RowsOfTablesAreTakenByTheirNumbers) {
  ModelBuilder builder;
  const uint32_t numbers = builder.input(OperandType::kTensorInt32, {4});
  const uint32_t table =
      builder.constant(OperandType::kTensorQuant8AsymmSigned, {9, 30}, bytes(9 * 30), 0.125f, 0);
  builder.operation(OperationType::kEmbeddingLookup, {numbers, table},
                    {builder.output(kReal, {4, 30})});
  expectNearReference(builder, {bytesOf({8, 0, 3, 8})}, kTolerance);
}

TEST_F(RealsTest, ANumberOutsideOfATableIsAnError) {
  ModelBuilder builder;
  const uint32_t data = builder.input(kReal, {3, 9, 2});
  const uint32_t numbers = builder.input(OperandType::kTensorInt32, {3, 4});
  builder.operation(OperationType::kGather,
                    {data, builder.scalar(int32_t{1}), numbers, builder.scalar(int32_t{1})},
                    {builder.output(kReal, {3, 4, 2})});
  const std::vector<uint8_t> values = reals(3 * 9 * 2);
  expectReference(builder, {values, bytesOf({0, 8, 1, 7, 2, 2, 2, 2, 5, 4, 3, 8})});
  const auto model = std::make_shared<const graph::Model>(builder.model());
  const auto prepared = device_->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  for (const int32_t wrong : {-1, 9, 1 << 30}) {
    const auto computed = computeModel(**prepared, *model,
                                       {values, bytesOf({0, 8, 1, 7, 2, 2, wrong, 2, 5, 4, 3, 8})});
    ASSERT_FALSE(computed) << wrong;
    EXPECT_EQ(computed.error().code(), ErrorCode::kBadData);
  }
  // The next execution is none the worse.
  EXPECT_TRUE(
      computeModel(**prepared, *model, {values, bytesOf({0, 8, 1, 7, 2, 2, 2, 2, 5, 4, 3, 8})}));
}

TEST_F(RealsTest, AnUpdateThatBeginsTooFarOutIsMoved) {
  for (const int32_t begin : {0, 3, 5, 100, -7}) {
    ModelBuilder builder;
    const uint32_t data = builder.input(kReal, {2, 9, 4});
    const uint32_t update = builder.input(kReal, {1, 4, 4});
    const uint32_t begins = builder.input(OperandType::kTensorInt32, {3});
    builder.operation(OperationType::kDynamicUpdateSlice, {data, update, begins},
                      {builder.output(kReal, {2, 9, 4})});
    expectReference(builder, {reals(2 * 9 * 4), reals(4 * 4), bytesOf({1, begin, 0})});
  }
}

TEST_F(RealsTest, RowsThatAreCheckedAreLeftToOthers) {
  for (const bool isRow : {false, true}) {
    ModelBuilder builder;
    const uint32_t data = builder.input(kReal, {4, 3});
    const uint32_t row = builder.input(kReal, {1, 3});
    const uint32_t begins = builder.input(OperandType::kTensorInt32, {2});
    builder.operation(OperationType::kDynamicUpdateSlice,
                      {data, row, begins, builder.scalar(isRow)}, {builder.output(kReal, {4, 3})});
    const auto supported = device_->supportedOperations(builder.model());
    ASSERT_TRUE(supported);
    EXPECT_EQ(supported->front().supported, !isRow) << supported->front().reason;
  }
}

TEST_F(RealsTest, RowsAreAddedUpInBothDirections) {
  for (const int32_t axis : {0, 1, -1})
    for (const bool isExclusive : {false, true})
      for (const bool isReverse : {false, true}) {
        ModelBuilder builder;
        const uint32_t input = builder.input(kReal, {5, 37, 6});
        builder.operation(
            OperationType::kCumsum,
            {input, builder.scalar(axis), builder.scalar(isExclusive), builder.scalar(isReverse)},
            {builder.output(kReal, {5, 37, 6})});
        expectNearReference(builder, {reals(5 * 37 * 6)}, kTolerance);
      }
}

TEST_F(RealsTest, DimensionsAreReversed) {
  ModelBuilder builder;
  const uint32_t input = builder.input(kReal, {3, 4, 5});
  const std::vector<int32_t> axes = {0, 2};
  builder.operation(OperationType::kReverse,
                    {input, builder.constant(OperandType::kTensorInt32, {2}, axes)},
                    {builder.output(kReal, {3, 4, 5})});
  expectReference(builder, {reals(3 * 4 * 5)});
}

}  // namespace
}  // namespace hearth::vulkan
