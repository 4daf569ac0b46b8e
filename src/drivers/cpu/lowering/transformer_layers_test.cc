// SPDX-License-Identifier: Apache-2.0
// Layers of language models give what the reference kernels give: attention, layers with weights of
// 8 and 4 bits, and weights that are converted while they are packed.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "drivers/cpu/microkernels/x86/f32_f16w_gemm.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

// `kernel` is the kind of kernel that the device reports for the last operation.
void expectLikeReference(const graph::Model& model, const std::vector<std::vector<float>>& inputs,
                         const char* kernel, float tolerance) {
  std::vector<Bytes> bytes;
  for (const std::vector<float>& input : inputs) bytes.push_back(bytesOf(input));
  EXPECT_EQ(differenceFromReference(model, bytes, kernel, tolerance), "");
}

struct AttentionCase {
  uint32_t batches, queries, heads, size, keys, groups, valueSize;
  float cap = 0.0f;
  // Dimensions of the mask; none = no mask.
  Dimensions mask;
  bool isCausal = false;
  uint32_t firstKey = 0;  // keys before it are masked
};

class AttentionTest : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionTest, EqualsTheReference) {
  const AttentionCase& c = GetParam();
  ModelBuilder builder;
  const uint32_t q = builder.input(kFloat, {c.batches, c.queries, c.heads, c.size});
  const uint32_t k = builder.input(kFloat, {c.batches, c.keys, c.groups, c.size});
  const uint32_t v = builder.input(kFloat, {c.batches, c.keys, c.groups, c.valueSize});
  std::vector<std::vector<float>> inputs = {
      randomFloats(size_t{c.batches} * c.queries * c.heads * c.size, 1),
      randomFloats(size_t{c.batches} * c.keys * c.groups * c.size, 2),
      randomFloats(size_t{c.batches} * c.keys * c.groups * c.valueSize, 3)};
  uint32_t mask = 0;
  if (c.mask.empty()) {
    mask = builder.omitted(kFloat);
  } else {
    mask = builder.input(kFloat, c.mask);
    size_t count = 1;
    for (const uint32_t dimension : c.mask) count *= dimension;
    std::vector<float> values = randomFloats(count, 4);
    if (c.isCausal) {
      const uint32_t keys = c.mask.back();
      for (size_t i = 0; i < count; ++i)
        if (i % keys > c.firstKey + i / keys % c.queries || i % keys < c.firstKey)
          values[i] = -std::numeric_limits<float>::infinity();
    }
    inputs.push_back(std::move(values));
  }
  const uint32_t output = builder.output(kFloat, {c.batches, c.queries, c.heads, c.valueSize});
  builder.operation(OperationType::kScaledDotProductAttention,
                    {q, k, v, mask, builder.scalar(0.35f), builder.scalar(c.cap)}, {output});
  expectLikeReference(builder.model(), inputs, "own", 2e-6f);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Values(AttentionCase{1, 1, 8, 64, 17, 1, 64}, AttentionCase{2, 5, 4, 33, 9, 2, 7},
                    AttentionCase{1, 7, 3, 40, 7, 3, 40, 0.0f, {1, 1, 7, 7}, true},
                    AttentionCase{1, 6, 4, 16, 10, 4, 16, 3.0f, {10}},
                    AttentionCase{2, 3, 2, 31, 5, 1, 12, 0.0f, {2, 1, 1, 5}},
                    AttentionCase{1, 1, 1, 1, 1, 1, 1},
                    // Enough rows for packed keys.
                    AttentionCase{1, 77, 3, 64, 77, 3, 64},
                    AttentionCase{2, 13, 8, 40, 50, 2, 80, 0.0f, {1, 1, 13, 50}, true, 5},
                    AttentionCase{1, 30, 4, 256, 128, 1, 256, 0.0f, {1, 1, 30, 128}, true},
                    AttentionCase{1, 30, 4, 7, 128, 1, 33, 2.0f, {1, 1, 30, 128}, true, 67},
                    AttentionCase{2, 9, 6, 17, 33, 3, 65, 0.0f, {2, 6, 9, 33}},
                    AttentionCase{1, 64, 1, 1, 16, 1, 1, 0.0f, {64, 1}},
                    // One token, with keys of each head and with shared keys.
                    AttentionCase{1, 1, 6, 80, 45, 6, 80, 0.0f, {1, 1, 1, 45}, true, 44},
                    AttentionCase{1, 1, 3, 100, 60, 1, 31, 0.0f, {60}}));

TEST(AttentionMaskTest, ARowOfNothingIsNaN) {
  ModelBuilder builder;
  const uint32_t q = builder.input(kFloat, {1, 2, 1, 4});
  const uint32_t k = builder.input(kFloat, {1, 3, 1, 4});
  const uint32_t v = builder.input(kFloat, {1, 3, 1, 4});
  const uint32_t mask = builder.input(kFloat, {1, 1, 2, 3});
  const uint32_t output = builder.output(kFloat, {1, 2, 1, 4});
  builder.operation(OperationType::kScaledDotProductAttention,
                    {q, k, v, mask, builder.scalar(1.0f), builder.scalar(0.0f)}, {output});
  const float none = -std::numeric_limits<float>::infinity();
  expectLikeReference(builder.model(),
                      {randomFloats(8, 1),
                       randomFloats(12, 2),
                       randomFloats(12, 3),
                       {none, none, none, 0.0f, none, 1.0f}},
                      "own", 1e-6f);
}

TEST(AttentionMaskTest, WhatIsMaskedForAllRowsMayBeAnything) {
  constexpr uint32_t kQueries = 20;
  constexpr uint32_t kKeys = 70;
  constexpr uint32_t kSize = 24;
  const float none = -std::numeric_limits<float>::infinity();
  ModelBuilder builder;
  const uint32_t q = builder.input(kFloat, {1, kQueries, 2, kSize});
  const uint32_t k = builder.input(kFloat, {1, kKeys, 1, kSize});
  const uint32_t v = builder.input(kFloat, {1, kKeys, 1, kSize});
  const uint32_t mask = builder.input(kFloat, {1, 1, kQueries, kKeys});
  const uint32_t output = builder.output(kFloat, {1, kQueries, 2, kSize});
  builder.operation(OperationType::kScaledDotProductAttention,
                    {q, k, v, mask, builder.scalar(1.0f), builder.scalar(0.0f)}, {output});
  std::vector<float> keys = randomFloats(kKeys * kSize, 2);
  std::vector<float> values = randomFloats(kKeys * kSize, 3);
  std::vector<float> masks(kQueries * kKeys, 0.0f);
  for (uint32_t row = 0; row < kQueries; ++row)
    for (uint32_t key = 0; key < kKeys; ++key)
      if (key < 3 || key >= 40) masks[row * kKeys + key] = none;
  std::vector<Bytes> inputs = {bytesOf(randomFloats(kQueries * 2 * kSize, 1)), bytesOf(keys),
                               bytesOf(values), bytesOf(masks)};
  const auto clean = runBoth(builder.model(), inputs);
  ASSERT_TRUE(clean) << clean.error().toString();
  for (uint32_t key = 0; key < kKeys; ++key) {
    if (key >= 3 && key < 40) continue;
    for (uint32_t i = 0; i < kSize; ++i)
      keys[key * kSize + i] = values[key * kSize + i] = std::numeric_limits<float>::quiet_NaN();
  }
  inputs[1] = bytesOf(keys);
  inputs[2] = bytesOf(values);
  const auto unwritten = runBoth(builder.model(), inputs);
  ASSERT_TRUE(unwritten) << unwritten.error().toString();
  EXPECT_EQ(unwritten->made, clean->made);
}

// Weights of each type, for layers of 37 inputs and 21 outputs.
class HybridTest : public testing::TestWithParam<OperandType> {};

TEST_P(HybridTest, EqualsTheReference) {
  constexpr uint32_t kInputs = 38;
  constexpr uint32_t kOutputs = 21;
  constexpr uint32_t kRows = 5;
  const OperandType type = GetParam();
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, {kRows, kInputs});
  std::mt19937 random(7);
  const bool isInt4 = type == OperandType::kTensorInt4;
  std::vector<int8_t> weights(isInt4 ? kInputs * kOutputs / 2 : kInputs * kOutputs);
  for (int8_t& weight : weights) weight = static_cast<int8_t>(random());
  const bool isPerChannel = type == OperandType::kTensorQuant8SymmPerChannel;
  const uint32_t filter =
      builder.constant(type, {kOutputs, kInputs}, weights, isPerChannel ? 0.0f : 0.02f);
  const uint32_t bias = builder.constant(kFloat, {kOutputs}, randomFloats(kOutputs, 8));
  const uint32_t output = builder.output(kFloat, {kRows, kOutputs});
  builder.operation(OperationType::kFullyConnected, {input, filter, bias, builder.scalar(1)},
                    {output});
  graph::Model model = builder.model();
  if (isPerChannel)
    model.main().operands[filter].perChannel.scales = risingScales(kOutputs, 0.001f);
  expectLikeReference(model, {randomFloats(kRows * kInputs, 9, 3.0f)}, hybridLayerKernel(isInt4),
                      1e-5f);
}

INSTANTIATE_TEST_SUITE_P(Types, HybridTest,
                         testing::Values(OperandType::kTensorQuant8SymmPerChannel,
                                         OperandType::kTensorQuant8AsymmSigned,
                                         OperandType::kTensorInt4));

TEST(HybridLayerTest, OneRowAFewAndMany) {
  constexpr uint32_t kInputs = 300;
  constexpr uint32_t kOutputs = 131;
  // The last one goes in two passes.
  for (const uint32_t rows : {1, 2, 4, 7, 31, 32, 77, 300}) {
    SCOPED_TRACE(rows);
    ModelBuilder builder;
    const uint32_t input = builder.input(kFloat, {rows, kInputs});
    std::mt19937 random(rows);
    std::vector<int8_t> weights(kInputs * kOutputs);
    for (int8_t& weight : weights) weight = static_cast<int8_t>(random() % 255 - 127);
    const uint32_t filter = builder.constant(OperandType::kTensorQuant8AsymmSigned,
                                             {kOutputs, kInputs}, weights, 0.002f);
    const uint32_t bias = builder.constant(kFloat, {kOutputs}, randomFloats(kOutputs, 8));
    builder.operation(OperationType::kFullyConnected, {input, filter, bias, builder.scalar(1)},
                      {builder.output(kFloat, {rows, kOutputs})});
    expectLikeReference(builder.model(), {randomFloats(size_t{rows} * kInputs, 9, 3.0f)},
                        hybridLayerKernel(false, true), 1e-5f);
  }
}

TEST(HybridLayerTest, ManyShortRowsGoInSeveralPasses) {
  constexpr uint32_t kRows = 300000;
  constexpr uint32_t kOutputs = 17;
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, {kRows, 1});
  const uint32_t filter = builder.constant(
      OperandType::kTensorQuant8AsymmSigned, {kOutputs, 1},
      std::vector<int8_t>{1, -2, 3, -4, 5, -6, 7, -8, 9, 10, 11, 12, 13, 14, 15, 16, 127}, 0.02f);
  builder.operation(OperationType::kFullyConnected,
                    {input, filter, builder.omitted(kFloat), builder.scalar(0)},
                    {builder.output(kFloat, {kRows, kOutputs})});
  expectLikeReference(builder.model(), {randomFloats(kRows, 9)}, hybridLayerKernel(), 1e-5f);
}

const char* halfLayerKernel() {
  return hasHalfProduct() ? "own" : floatLayerKernel();
}

std::vector<_Float16> randomHalves(size_t count, uint32_t seed) {
  std::vector<_Float16> halves;
  for (const float value : randomFloats(count, seed))
    halves.push_back(static_cast<_Float16>(value));
  return halves;
}

class ConvertedConstantTest : public testing::TestWithParam<OperationType> {};

// Small weights are packed in float32, so these are not small.
TEST_P(ConvertedConstantTest, Float16WeightsArePackedFromWhereTheyLie) {
  constexpr uint32_t kInputs = 400;
  constexpr uint32_t kOutputs = 344;
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, {3, kInputs});
  const std::vector<_Float16> weights = randomHalves(kInputs * kOutputs, 5);
  std::vector<_Float16> biases;
  for (const float value : randomFloats(kOutputs, 6))
    biases.push_back(static_cast<_Float16>(value));
  const uint32_t half = builder.constant(OperandType::kTensorFloat16, {kOutputs, kInputs}, weights);
  const uint32_t halfBias = builder.constant(OperandType::kTensorFloat16, {kOutputs}, biases);
  const uint32_t filter = builder.temporary(kFloat, {kOutputs, kInputs});
  const uint32_t bias = builder.temporary(kFloat, {kOutputs});
  const uint32_t output = builder.output(kFloat, {3, kOutputs});
  builder.operation(GetParam(), {half}, {filter});
  builder.operation(GetParam(), {halfBias}, {bias});
  builder.operation(OperationType::kFullyConnected, {input, filter, bias, builder.scalar(0)},
                    {output});
  expectLikeReference(builder.model(), {randomFloats(3 * kInputs, 7)}, halfLayerKernel(), 1e-6f);
}

// More weights than are packed at a time.
TEST_P(ConvertedConstantTest, LargeFloat16LayersArePackedInPieces) {
  constexpr uint32_t kInputs = 768;
  constexpr uint32_t kOutputs = 2900;
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, {2, kInputs});
  const std::vector<_Float16> weights = randomHalves(size_t{kInputs} * kOutputs, 5);
  const uint32_t half = builder.constant(OperandType::kTensorFloat16, {kOutputs, kInputs}, weights);
  const uint32_t filter = builder.temporary(kFloat, {kOutputs, kInputs});
  const uint32_t bias = builder.constant(kFloat, {kOutputs}, randomFloats(kOutputs, 6));
  builder.operation(GetParam(), {half}, {filter});
  builder.operation(OperationType::kFullyConnected, {input, filter, bias, builder.scalar(0)},
                    {builder.output(kFloat, {2, kOutputs})});
  expectLikeReference(builder.model(), {randomFloats(2 * kInputs, 7)}, halfLayerKernel(), 1e-5f);
}

TEST_P(ConvertedConstantTest, Float16FiltersOverPixelsAndWindows) {
  for (const uint32_t side : {1, 3}) {
    const uint32_t inputs = side == 1 ? 1060 : 350;
    const uint32_t outputs = side == 1 ? 1000 : 344;
    ModelBuilder builder;
    const uint32_t input = builder.input(kFloat, {2, 5, 6, inputs});
    const Dimensions dimensions{outputs, side, side, inputs};
    std::vector<_Float16> weights;
    for (const float value : randomFloats(size_t{outputs} * side * side * inputs, 5))
      weights.push_back(static_cast<_Float16>(value));
    const uint32_t half = builder.constant(OperandType::kTensorFloat16, dimensions, weights);
    const uint32_t filter = builder.temporary(kFloat, dimensions);
    const uint32_t bias = builder.constant(kFloat, {outputs}, randomFloats(outputs, 6));
    const uint32_t output = builder.output(kFloat, {2, 5, 6, outputs});
    builder.operation(GetParam(), {half}, {filter});
    const uint32_t same = builder.scalar(1);
    const uint32_t one = builder.scalar(1);
    builder.operation(OperationType::kConv2d,
                      {input, filter, bias, same, one, one, builder.scalar(3)}, {output});
    expectLikeReference(builder.model(), {randomFloats(size_t{60} * inputs, 7)}, halfLayerKernel(),
                        2e-5f);
  }
}

// The embedding table of a language model is also the weights of its last layer.
TEST_P(ConvertedConstantTest, LookUpsTakeRowsFromWhereTheyLie) {
  constexpr uint32_t kInputs = 400;
  constexpr uint32_t kRows = 344;
  ModelBuilder builder;
  const uint32_t indices =
      builder.constant(OperandType::kTensorInt32, {3}, std::vector<int32_t>{23, 0, 7});
  const uint32_t input = builder.input(kFloat, {3, kInputs});
  std::vector<_Float16> weights;
  for (const float value : randomFloats(kInputs * kRows, 5))
    weights.push_back(static_cast<_Float16>(value));
  const uint32_t half = builder.constant(OperandType::kTensorFloat16, {kRows, kInputs}, weights);
  const uint32_t table = builder.temporary(kFloat, {kRows, kInputs});
  const uint32_t rows = builder.temporary(kFloat, {3, kInputs});
  const uint32_t sum = builder.temporary(kFloat, {3, kInputs});
  const uint32_t bias = builder.omitted(kFloat);
  builder.operation(GetParam(), {half}, {table});
  builder.operation(OperationType::kEmbeddingLookup, {indices, table}, {rows});
  builder.operation(OperationType::kAdd, {input, rows, builder.scalar(0)}, {sum});
  builder.operation(OperationType::kFullyConnected, {sum, table, bias, builder.scalar(0)},
                    {builder.output(kFloat, {3, kRows})});
  expectLikeReference(builder.model(), {randomFloats(3 * kInputs, 7)}, halfLayerKernel(), 1e-6f);
}

TEST_P(ConvertedConstantTest, AReaderThatDoesNotPackGetsIt) {
  ModelBuilder builder;
  const uint32_t input = builder.input(kFloat, {4});
  const uint32_t half = builder.constant(
      OperandType::kTensorFloat16, {4},
      std::vector<_Float16>{_Float16(1), _Float16(2.5), _Float16(-3), _Float16(0.25)});
  const uint32_t whole = builder.temporary(kFloat, {4});
  const uint32_t output = builder.output(kFloat, {4});
  builder.operation(GetParam(), {half}, {whole});
  builder.operation(OperationType::kAdd, {input, whole, builder.scalar(0)}, {output});
  const auto both = runBoth(builder.model(), {bytesOf(std::vector<float>{1, 1, 1, 1})});
  ASSERT_TRUE(both) << both.error().toString();
  EXPECT_EQ(both->made[0], bytesOf(std::vector<float>{2, 3.5, -2, 1.25}));
}

// As data of a layer, and of an operation that has no second input.
TEST_P(ConvertedConstantTest, AReaderThatTakesItAsDataGetsIt) {
  for (const bool isLayer : {true, false}) {
    ModelBuilder builder;
    const uint32_t input = builder.input(kFloat, {4});
    const uint32_t half = builder.constant(OperandType::kTensorFloat16, {1, 2},
                                           std::vector<_Float16>{_Float16(-2), _Float16(3)});
    const uint32_t whole = builder.temporary(kFloat, {1, 2});
    const uint32_t other = builder.temporary(kFloat, {1, 2});
    builder.operation(GetParam(), {half}, {whole});
    if (isLayer) {
      const uint32_t filter = builder.constant(kFloat, {2, 2}, std::vector<float>{1, 2, 0, -1});
      const uint32_t bias = builder.constant(kFloat, {2}, std::vector<float>{0, 5});
      builder.operation(OperationType::kFullyConnected, {whole, filter, bias, builder.scalar(0)},
                        {other});
    } else {
      builder.operation(OperationType::kAbs, {whole}, {other});
    }
    const uint32_t pairs = builder.temporary(kFloat, {2, 2});
    const uint32_t shape =
        builder.constant(OperandType::kTensorInt32, {2}, std::vector<int32_t>{2, 2});
    builder.operation(OperationType::kReshape, {input, shape}, {pairs});
    builder.operation(OperationType::kAdd, {pairs, other, builder.scalar(0)},
                      {builder.output(kFloat, {2, 2})});
    const auto both = runBoth(builder.model(), {bytesOf(std::vector<float>{1, 1, 2, 2})});
    ASSERT_TRUE(both) << both.error().toString();
    EXPECT_EQ(both->made[0],
              bytesOf(isLayer ? std::vector<float>{5, 3, 6, 4} : std::vector<float>{3, 4, 4, 5}));
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, ConvertedConstantTest,
                         testing::Values(OperationType::kDequantize, OperationType::kCast));

}  // namespace
}  // namespace hearth::cpu
