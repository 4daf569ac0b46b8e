// SPDX-License-Identifier: Apache-2.0
// RNN, LSTM and SVDF families: small cells that were calculated by hand. The conformance vectors
// have larger ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "ops/recurrent_activation.h"
#include "ops/testing/operation_builder.h"
#include "ops/testing/values.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

float sigmoid(float value) {
  return 1.0f / (1.0f + std::exp(-value));
}

TEST(RnnTest, OneStep) {
  OperationBuilder builder(OperationType::kRnn);
  builder.input({1, 2}, std::vector<float>{1, 2})
      .input({2, 2}, std::vector<float>{1, 0, 0, -1})
      .input({2, 2}, std::vector<float>{0, 1, 1, 0})
      .input({2}, std::vector<float>{0.5f, 0.5f})
      .input({1, 2}, std::vector<float>{10, 20})
      .scalar(1);
  builder.output().output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(0), ElementsAre(21.5f, 8.5f));
  EXPECT_THAT(builder.result<float>(1), ElementsAre(21.5f, 8.5f));
}

OperationBuilder sequence(int32_t timeMajor, Dimensions input) {
  OperationBuilder builder(OperationType::kUnidirectionalSequenceRnn);
  builder.input(std::move(input), std::vector<float>{1, 2, 3, 4})
      .input({1, 1}, std::vector<float>{1})
      .input({1, 1}, std::vector<float>{10})
      .input({1}, std::vector<float>{0})
      .input({2, 1}, std::vector<float>{0, 1})
      .scalar(0)
      .scalar(timeMajor);
  builder.output().output();
  return builder;
}

TEST(RnnTest, SequencesOfBatchesAndOfSteps) {
  OperationBuilder batchMajor = sequence(0, {2, 2, 1});
  ASSERT_TRUE(batchMajor.run());
  EXPECT_THAT(batchMajor.result<float>(0), ElementsAre(1, 12, 13, 134));
  EXPECT_THAT(batchMajor.result<float>(1), ElementsAre(12, 134));
  OperationBuilder timeMajor = sequence(1, {2, 2, 1});
  ASSERT_TRUE(timeMajor.run());
  EXPECT_THAT(timeMajor.result<float>(0), ElementsAre(1, 12, 13, 124));
}

TEST(RnnTest, RefusesShapesThatDoNotFit) {
  OperationBuilder builder(OperationType::kRnn);
  builder.input({1, 2}, std::vector<float>{1, 2})
      .input({2, 3}, std::vector<float>(6))
      .input({2, 2}, std::vector<float>(4))
      .input({2}, std::vector<float>(2))
      .input({1, 2}, std::vector<float>(2))
      .scalar(1);
  builder.output().output();
  EXPECT_FALSE(builder.run());
}

// One unit whose weights are all given as values; a NaN omits the input gate.
OperationBuilder lstm(float inputGate, float cellClip) {
  OperationBuilder builder(OperationType::kLstm);
  const auto one = [&](Dimensions dimensions, float value) {
    builder.input(std::move(dimensions), std::vector<float>{value});
  };
  const bool isCoupled = std::isnan(inputGate);
  const auto inputWeight = [&](Dimensions dimensions, float value) {
    if (isCoupled)
      builder.omitted(kFloat);
    else
      one(std::move(dimensions), value);
  };
  one({1, 1}, 2.0f);  // input
  inputWeight({1, 1}, inputGate);
  one({1, 1}, 0.5f);          // forget
  one({1, 1}, 1.0f);          // cell
  one({1, 1}, -0.5f);         // output
  inputWeight({1, 1}, 0.0f);  // recurrent
  one({1, 1}, 0.0f);
  one({1, 1}, 0.25f);
  one({1, 1}, 0.0f);
  for (int i = 0; i < 3; ++i) builder.omitted(kFloat);  // peephole
  inputWeight({1}, 0.0f);                               // biases
  one({1}, 0.0f);
  one({1}, 0.0f);
  one({1}, 0.0f);
  builder.omitted(kFloat).omitted(kFloat);  // projection
  one({1, 1}, 4.0f);                        // output state
  one({1, 1}, 3.0f);                        // cell state
  builder.scalar(4).scalar(cellClip).scalar(0.0f);
  builder.output().output().output().output();
  return builder;
}

TEST(LstmTest, OneUnit) {
  const float candidate = std::tanh(2.0f + 0.25f * 4.0f);
  const float cell = sigmoid(1.0f) * 3.0f + sigmoid(0.6f) * candidate;
  const float output = sigmoid(-1.0f) * std::tanh(cell);
  OperationBuilder builder = lstm(0.3f, 0.0f);
  ASSERT_TRUE(builder.run());
  EXPECT_EQ(builder.dimensions(0), (Dimensions{1, 4}));
  EXPECT_THAT(builder.result<float>(1), ElementsAre(FloatNear(output, 1e-6f)));
  EXPECT_THAT(builder.result<float>(2), ElementsAre(FloatNear(cell, 1e-6f)));
  EXPECT_THAT(builder.result<float>(3), ElementsAre(FloatNear(output, 1e-6f)));
}

TEST(LstmTest, CoupledGatesAndClipping) {
  const float forget = sigmoid(1.0f);
  const float cell = forget * 3.0f + (1.0f - forget) * std::tanh(3.0f);
  OperationBuilder coupled = lstm(NAN, 0.0f);
  ASSERT_TRUE(coupled.run());
  EXPECT_EQ(coupled.dimensions(0), (Dimensions{1, 3}));
  EXPECT_THAT(coupled.result<float>(2), ElementsAre(FloatNear(cell, 1e-6f)));
  OperationBuilder clipped = lstm(NAN, 1.5f);
  ASSERT_TRUE(clipped.run());
  EXPECT_THAT(clipped.result<float>(2), ElementsAre(1.5f));
}

// A sequence of the batch elements [first, first + count), with a projection and peepholes.
std::vector<float> outputsOf(bool isTimeMajor, uint32_t first, uint32_t count) {
  constexpr uint32_t kBatches = 5;
  constexpr uint32_t kSteps = 3;
  constexpr uint32_t kInputs = 19;
  constexpr uint32_t kUnits = 6;
  constexpr uint32_t kOutputs = 35;
  const auto some = [](size_t size) {
    std::vector<float> values = randomValues<float>(size, -9, 9);
    for (float& value : values) value /= 16.0f;
    return values;
  };
  const std::vector<float> all = some(size_t{kBatches} * kSteps * kInputs);
  std::vector<float> chosen(size_t{count} * kSteps * kInputs);
  for (uint32_t batch = 0; batch < count; ++batch)
    for (uint32_t step = 0; step < kSteps; ++step)
      for (uint32_t i = 0; i < kInputs; ++i)
        chosen[((isTimeMajor ? step * count + batch : batch * kSteps + step)) * kInputs + i] =
            all[((first + batch) * kSteps + step) * kInputs + i];
  OperationBuilder builder(OperationType::kUnidirectionalSequenceLstm);
  builder.input(
      isTimeMajor ? Dimensions{kSteps, count, kInputs} : Dimensions{count, kSteps, kInputs},
      chosen);
  for (int gate = 0; gate < 4; ++gate) builder.input({kUnits, kInputs}, some(kUnits * kInputs));
  for (int gate = 0; gate < 4; ++gate) builder.input({kUnits, kOutputs}, some(kUnits * kOutputs));
  for (int gate = 0; gate < 3; ++gate) builder.input({kUnits}, some(kUnits));
  for (int gate = 0; gate < 4; ++gate) builder.input({kUnits}, some(kUnits));
  builder.input({kOutputs, kUnits}, some(kOutputs * kUnits)).input({kOutputs}, some(kOutputs));
  builder.input({count, kOutputs}, std::vector<float>(size_t{count} * kOutputs, 0.25f))
      .input({count, kUnits}, std::vector<float>(size_t{count} * kUnits, 0.5f));
  builder.scalar(4).scalar(0.0f).scalar(0.0f).scalar(isTimeMajor);
  builder.output();
  const Status status = builder.run();
  EXPECT_TRUE(status) << status.error().toString();
  const std::vector<float> values = builder.result<float>(0);
  if (!isTimeMajor) return values;
  std::vector<float> result(values.size());
  for (uint32_t batch = 0; batch < count; ++batch)
    for (uint32_t step = 0; step < kSteps; ++step)
      std::copy_n(values.data() + (step * count + batch) * kOutputs, kOutputs,
                  result.data() + (batch * kSteps + step) * kOutputs);
  return result;
}

// All batch elements take a step together and do not affect each other.
TEST(LstmTest, BatchElementsAreIndependent) {
  std::vector<float> expected;
  for (uint32_t batch = 0; batch < 5; ++batch) {
    const std::vector<float> one = outputsOf(false, batch, 1);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  for (const bool isTimeMajor : {false, true})
    EXPECT_THAT(outputsOf(isTimeMajor, 0, 5), Pointwise(FloatNear(1e-6f), expected));
}

TEST(AddProductsTest, FollowTheDefinition) {
  for (const size_t rows : {1, 3, 4, 9}) {
    for (const size_t columns : {1, 15, 16, 50}) {
      for (const size_t count : {1, 2, 5}) {
        const size_t stride = columns + 3;
        // Whole numbers: every sum is exact.
        const auto matrix = randomValues<float>(rows * columns, -20, 20);
        const auto vectors = randomValues<float>(count * stride, -20, 20);
        std::vector<float> expected = randomValues<float>(count * rows, -20, 20);
        std::vector<float> made = expected;
        for (size_t v = 0; v < count; ++v)
          for (size_t r = 0; r < rows; ++r)
            for (size_t c = 0; c < columns; ++c)
              expected[v * rows + r] += matrix[r * columns + c] * vectors[v * stride + c];
        addProducts(matrix.data(), rows, columns, {vectors.data(), stride, count}, made.data());
        EXPECT_EQ(made, expected) << rows << " " << columns << " " << count;
      }
    }
  }
}

TEST(SvdfTest, HistoryMovesOn) {
  OperationBuilder builder(OperationType::kSvdf);
  builder.input({1, 2}, std::vector<float>{1, 2})
      .input({2, 2}, std::vector<float>{1, 1, 0, 1})  // features of two filters
      .input({2, 3}, std::vector<float>{1, 2, 3, 1, 1, 1})
      .input({1}, std::vector<float>{0.5f})
      .input({1, 6}, std::vector<float>{9, 1, 0, 9, 3, 0})
      .scalar(2)
      .scalar(0);
  builder.output().output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(0), ElementsAre(1, 3, 0, 3, 2, 0));
  // 0.5 + (9 + 2 + 9) + (9 + 3 + 2)
  EXPECT_THAT(builder.result<float>(1), ElementsAre(34.5f));
}

TEST(SvdfTest, RefusesRanksThatDoNotDivide) {
  for (const int32_t rank : {0, -1, 2, INT32_MIN}) {
    OperationBuilder builder(OperationType::kSvdf);
    builder.input({1, 2}, std::vector<float>{1, 2})
        .input({3, 2}, std::vector<float>(6))
        .input({3, 3}, std::vector<float>(9))
        .omitted(kFloat)
        .input({1, 9}, std::vector<float>(9))
        .scalar(rank)
        .scalar(0);
    builder.output().output();
    EXPECT_FALSE(builder.run()) << rank;
  }
}

// Two filters of one unit over two features, with a memory of three.
OperationBuilder integerSvdfWithoutOutputs(std::vector<int8_t> input, int32_t activation,
                                           float featureScale = 0.25f,
                                           int32_t featureZeroPoint = 0) {
  using Builder = OperationBuilder;
  OperationBuilder builder(OperationType::kSvdf);
  builder.input(Builder::tensor(kInt8, {1, 2}, 0.5f, 3), std::move(input))
      .input(Builder::tensor(kInt8, {2, 2}, featureScale, featureZeroPoint),
             std::vector<int8_t>{1, 1, 0, -100})
      .input(Builder::tensor(kInt16, {2, 3}, 0.5f), std::vector<int16_t>{1, 2, 3, 100, 1, 1})
      .input(Builder::tensor(OperandType::kTensorInt32, {1}, 0.125f), std::vector<int32_t>{5})
      .input(Builder::tensor(kInt16, {1, 6}, 0.25f), std::vector<int16_t>{9, 1, 0, 9, 3, 0})
      .scalar(2)
      .scalar(activation);
  return builder;
}

OperationBuilder integerSvdf(std::vector<int8_t> input, int32_t activation,
                             float featureScale = 0.25f, int32_t featureZeroPoint = 0) {
  using Builder = OperationBuilder;
  OperationBuilder builder =
      integerSvdfWithoutOutputs(std::move(input), activation, featureScale, featureZeroPoint);
  builder.output(Builder::tensor(OperandType::kTensorQuant16Symm, {1, 6}, 0.25f))
      .output(Builder::tensor(OperandType::kTensorQuant8AsymmSigned, {1, 1}, 4.0f, -128));
  return builder;
}

TEST(SvdfTest, IntegersAreRescaledToTheStateAndTheOutput) {
  OperationBuilder builder = integerSvdf({8, 5}, 1);
  ASSERT_TRUE(builder.run());
  // Features: (5 + 2) / 2, halves rounded up, and -200 / 2.
  EXPECT_THAT(builder.result<int16_t>(0), ElementsAre(1, 4, 0, 3, -100, 0));
  // 5 + (9 + 2 + 12) + (900 + 3 - 100), in steps of 32.
  EXPECT_THAT(builder.result<int8_t>(1), ElementsAre(26 - 128));
}

TEST(SvdfTest, IntegersSaturate) {
  // A step of the features is four steps of the state.
  OperationBuilder builder = integerSvdf({-128, 127}, 1, 2.0f);
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<int16_t>(0), ElementsAre(1, -28, 0, 3, -32768, 0));
  EXPECT_THAT(builder.result<int8_t>(1), ElementsAre(-128));

  OperationBuilder upwards = integerSvdf({-128, -128}, 1, 2.0f);
  ASSERT_TRUE(upwards.run());
  EXPECT_THAT(upwards.result<int16_t>(0), ElementsAre(1, -1048, 0, 3, 32767, 0));
  EXPECT_THAT(upwards.result<int8_t>(1), ElementsAre(127));
}

TEST(SvdfTest, OutputsInIntegersMayBeOmitted) {
  const graph::Operand state =
      OperationBuilder::tensor(OperandType::kTensorQuant16Symm, {1, 6}, 0.25f);
  const graph::Operand sum =
      OperationBuilder::tensor(OperandType::kTensorQuant8AsymmSigned, {1, 1}, 4.0f, -128);
  OperationBuilder withState = integerSvdfWithoutOutputs({8, 5}, 1);
  withState.output(state).omittedOutput(sum);
  ASSERT_TRUE(withState.run());
  EXPECT_THAT(withState.result<int16_t>(0), ElementsAre(1, 4, 0, 3, -100, 0));

  OperationBuilder withSum = integerSvdfWithoutOutputs({8, 5}, 1);
  withSum.omittedOutput(state).output(sum);
  ASSERT_TRUE(withSum.run());
  EXPECT_THAT(withSum.result<int8_t>(1), ElementsAre(26 - 128));
}

TEST(SvdfTest, IntegersHaveSymmetricWeightsAndRelu) {
  EXPECT_FALSE(integerSvdf({8, 5}, 1, 0.25f, 1).run());
  for (const int32_t activation : {0, 2, 3, 4, 6})
    EXPECT_FALSE(integerSvdf({8, 5}, activation).run()) << activation;
}

// In steps of 1/4096.
constexpr std::array<int32_t, 4> kBiases = {4000, 100, 200, 300};

// One unit of the integer cell without projection and layer normalisation.
OperationBuilder integerLstm(std::vector<int8_t> input, float cellScale,
                             float outputScale = 1.0f / 128, int32_t outputZeroPoint = -5,
                             float inputScale = 1.0f / 64,
                             const std::array<int32_t, 4>& biases = kBiases) {
  using Builder = OperationBuilder;
  OperationBuilder builder(OperationType::kQuantizedSequenceLstm);
  const uint32_t steps = static_cast<uint32_t>(input.size());
  builder.input(Builder::tensor(kInt8, {1, steps, 1}, inputScale, 3), std::move(input));
  for (int i = 0; i < 8; ++i)
    builder.input(Builder::tensor(kInt8, {1, 1}, inputScale, 0),
                  std::vector<int8_t>{static_cast<int8_t>(20 * i - 70)});
  for (int i = 0; i < 3; ++i) builder.omitted(OperandType::kTensorQuant16Symm);
  for (const int32_t bias : biases)
    builder.input(Builder::tensor(OperandType::kTensorInt32, {1}, 1.0f / 4096, 0),
                  std::vector<int32_t>{bias});
  builder.omitted(kInt8).omitted(OperandType::kTensorInt32);
  builder.input(Builder::tensor(kInt8, {1, 1}, 1.0f / 128, -5), std::vector<int8_t>{-5});
  builder.input(Builder::tensor(OperandType::kTensorQuant16Symm, {1, 1}, cellScale, 0),
                std::vector<int16_t>{0});
  for (int i = 0; i < 4; ++i) builder.omitted(OperandType::kTensorQuant16Symm);
  builder.scalar(0.0f).scalar(0.0f).scalar(false);
  for (int i = 0; i < 4; ++i) builder.scalar(0.0f);
  builder.scalar(1.0f / 128);
  for (int i = 0; i < 4; ++i) builder.scalar(0);
  builder.scalar(-5);
  builder.output(Builder::tensor(kInt8, {}, outputScale, outputZeroPoint))
      .output(Builder::tensor(kInt8, {}, 1.0f / 128, -5))
      .output(Builder::tensor(OperandType::kTensorQuant16Symm, {}, cellScale, 0));
  return builder;
}

void expectTheRealCell(float cellScale) {
  const std::vector<int8_t> input = {100, -100, 30};
  OperationBuilder builder = integerLstm(input, cellScale);
  ASSERT_TRUE(builder.run());
  const auto saturated = [&](float x) {
    return std::clamp(x, -32768 * cellScale, 32767 * cellScale);
  };
  float hidden = 0.0f, cell = 0.0f;
  for (size_t t = 0; t < input.size(); ++t) {
    const float x = static_cast<float>(input[t] - 3) / 64;
    const auto gate = [&](int i) {
      return x * static_cast<float>(20 * i - 70) / 64 +
             hidden * static_cast<float>(20 * (i + 4) - 70) / 64 +
             static_cast<float>(kBiases[static_cast<size_t>(i)]) / 4096;
    };
    const float i = sigmoid(gate(0)), f = sigmoid(gate(1)), g = std::tanh(gate(2)),
                o = sigmoid(gate(3));
    cell = saturated(saturated(f * cell) + saturated(i * g));
    hidden = o * std::tanh(cell);
    EXPECT_NEAR(static_cast<float>(builder.result<int8_t>(0)[t] + 5) / 128, hidden,
                1.5f / 128 + cellScale);
  }
  EXPECT_EQ(builder.result<int8_t>(1)[0], builder.result<int8_t>(0)[2]);
  EXPECT_NEAR(static_cast<float>(builder.result<int16_t>(2)[0]) * cellScale, cell,
              0.02f + cellScale);
}

TEST(QuantizedSequenceLstmTest, FollowsTheRealCell) {
  expectTheRealCell(1.0f / 2048);
}

// tanh of the cell state has a fixed-point form for scales of 2^-15 to 2^-9 only.
TEST(QuantizedSequenceLstmTest, TheCellScaleIsAnyPowerOfTwo) {
  for (const int exponent : {-30, -19, -17, -16, -15, -9, -8, -7, -4, 0}) {
    SCOPED_TRACE(exponent);
    expectTheRealCell(std::ldexp(1.0f, exponent));
  }
}

// The sum of 213,500 is 874.49998 steps with a factor in double precision, and 875 in TensorFlow
// Lite.
TEST(QuantizedSequenceLstmTest, FactorsAreThoseOfFloat32) {
  const auto stateOf = [](float inputScale, int32_t bias) {
    OperationBuilder builder =
        integerLstm({3}, 0x1p-15f, 1.0f / 128, -5, inputScale, {0, 0, bias, 0});
    EXPECT_TRUE(builder.run());
    return builder.result<int16_t>(2)[0];
  };
  const int16_t state = stateOf(0.001f, 213500);
  EXPECT_EQ(state, stateOf(1.0f / 64, 875));
  EXPECT_NE(state, stateOf(1.0f / 64, 874));
}

TEST(QuantizedSequenceLstmTest, TheOutputHasTheBytesOfTheState) {
  const std::vector<int8_t> input = {100, -100, 30};
  OperationBuilder like = integerLstm(input, 1.0f / 2048);
  OperationBuilder unlike = integerLstm(input, 1.0f / 2048, 1.0f / 64, 7);
  ASSERT_TRUE(like.run());
  ASSERT_TRUE(unlike.run());
  EXPECT_EQ(unlike.result<int8_t>(0), like.result<int8_t>(0));
  EXPECT_EQ(unlike.result<int8_t>(1), like.result<int8_t>(1));
}

TEST(QuantizedSequenceLstmTest, RefusesACellScaleThatIsNoPowerOfTwo) {
  EXPECT_FALSE(integerLstm({1}, 0.0007f).run());
  EXPECT_FALSE(integerLstm({1}, 2.0f).run());
  EXPECT_FALSE(integerLstm({1}, 0x1p-31f).run());
}

}  // namespace
}  // namespace hearth::ops
