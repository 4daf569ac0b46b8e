// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ops/philox.h"
#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

constexpr auto kLong = OperandType::kTensorInt64;

graph::Operand longs(uint32_t count) {
  graph::Operand operand;
  operand.type = kLong;
  operand.dimensions = {count};
  return operand;
}

// The test vectors that the authors of Philox published.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_THAT(Philox(0, 0).block(0), ElementsAre(0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8));
  EXPECT_THAT(Philox(UINT64_MAX, UINT64_MAX).block(UINT64_MAX),
              ElementsAre(0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD));
}

struct Drawn {
  std::vector<float> numbers;
  int64_t next = 0;
};

Drawn fill(OperationType type, std::vector<int32_t> shape, std::vector<int64_t> seeds,
           int64_t position) {
  OperationBuilder builder(type);
  builder.input({static_cast<uint32_t>(shape.size())}, shape)
      .input(longs(static_cast<uint32_t>(seeds.size())), seeds)
      .input(longs(1), std::vector<int64_t>{position})
      .output()
      .output(kLong);
  if (!builder.run()) return {};
  return {builder.result<float>(0), builder.result<int64_t>(1).at(0)};
}

// The expected numbers of these tests are LiteRT's for the same seeds, in its first and second run.
TEST(RandomNumbersTest, UniformNumbersAreThoseOfTheSeeds) {
  const Drawn first = fill(OperationType::kRandomUniform, {2, 3}, {1, 2}, 0);
  EXPECT_THAT(first.numbers, Pointwise(FloatNear(1e-7f), {0.40639675f, 0.8575996f, 0.05539584f,
                                                          0.08587229f, 0.4121536f, 0.03663087f}));
  EXPECT_EQ(first.next, 2);
  const Drawn second = fill(OperationType::kRandomUniform, {2, 3}, {1, 2}, first.next);
  EXPECT_THAT(second.numbers, Pointwise(FloatNear(1e-7f), {0.8690897f, 0.04222715f, 0.35364604f,
                                                           0.23803174f, 0.06833863f, 0.4921664f}));
  EXPECT_THAT(
      fill(OperationType::kRandomUniform, {5}, {-5, 0}, 0).numbers,
      Pointwise(FloatNear(1e-7f), {0.65228f, 0.88965607f, 0.34741497f, 0.8836249f, 0.99777305f}));
}

TEST(RandomNumbersTest, NormalNumbersAreThoseOfTheSeeds) {
  const Drawn first = fill(OperationType::kRandomStandardNormal, {6}, {1, 2}, 0);
  EXPECT_THAT(first.numbers, Pointwise(FloatNear(1e-6f), {-1.0467793f, 0.8397046f, 1.2358364f,
                                                          2.0637853f, 0.3037427f, 1.2963251f}));
  const Drawn second = fill(OperationType::kRandomStandardNormal, {6}, {1, 2}, first.next);
  EXPECT_THAT(second.numbers, Pointwise(FloatNear(1e-6f), {0.13890629f, 0.51119745f, 1.4377704f,
                                                           0.108322755f, 0.1139762f, -2.3137782f}));
}

TEST(RandomNumbersTest, WithoutSeedsEachRunDiffers) {
  const Drawn first = fill(OperationType::kRandomUniform, {64}, {0, 0}, 0);
  const Drawn second = fill(OperationType::kRandomUniform, {64}, {0, 0}, 0);
  ASSERT_EQ(first.numbers.size(), 64u);
  EXPECT_NE(first.numbers, second.numbers);
  for (const float number : first.numbers) {
    EXPECT_GE(number, 0.0f);
    EXPECT_LT(number, 1.0f);
  }
}

TEST(RandomNumbersTest, ManyNormalNumbersHaveTheirMoments) {
  const std::vector<float> numbers =
      fill(OperationType::kRandomStandardNormal, {100003}, {7, 0}, 0).numbers;
  ASSERT_EQ(numbers.size(), 100003u);
  double sum = 0;
  double squares = 0;
  for (const float number : numbers) {
    sum += number;
    squares += double{number} * number;
  }
  EXPECT_NEAR(sum / 100003, 0, 0.02);
  EXPECT_NEAR(squares / 100003, 1, 0.02);
}

TEST(RandomNumbersTest, SeedsAndShapesAreChecked) {
  EXPECT_TRUE(fill(OperationType::kRandomUniform, {4}, {1}, 0).numbers.empty());
  EXPECT_TRUE(fill(OperationType::kRandomUniform, {-4}, {1, 2}, 0).numbers.empty());
  EXPECT_TRUE(fill(OperationType::kRandomUniform, {}, {1, 2}, 0).numbers.empty());
}

std::vector<int32_t> classes(std::vector<float> logits, int32_t samples, int64_t position,
                             int64_t* next) {
  OperationBuilder builder(OperationType::kMultinomial);
  builder.input({2, static_cast<uint32_t>(logits.size() / 2)}, logits)
      .input({1}, std::vector<int32_t>{samples})
      .input(longs(2), std::vector<int64_t>{3, 4})
      .input(longs(1), std::vector<int64_t>{position})
      .output(OperandType::kTensorInt32)
      .output(kLong);
  if (!builder.run()) return {};
  *next = builder.result<int64_t>(1).at(0);
  return builder.result<int32_t>(0);
}

TEST(RandomNumbersTest, ClassesAreThoseOfTheSeeds) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {0, 1, 2, -1, 3, 0, 0, kNever};
  int64_t next = 0;
  EXPECT_THAT(classes(logits, 5, 0, &next), ElementsAre(2, 2, 1, 2, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(classes(logits, 5, next, &next), ElementsAre(0, 0, 1, 1, 3, 0, 0, 0, 0, 1));
}

TEST(RandomNumbersTest, ClassesExistWhateverTheLogits) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  int64_t next = 0;
  const std::vector<int32_t> drawn = classes({kNan, kNan, kNan, kNan}, 50, 0, &next);
  ASSERT_EQ(drawn.size(), 100u);
  for (const int32_t value : drawn) {
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 2);
  }
  EXPECT_THAT(classes({1, 2}, -1, 0, &next), ElementsAre());
}

}  // namespace
}  // namespace hearth::ops
