// SPDX-License-Identifier: Apache-2.0
// SELECT, EMBEDDING_LOOKUP, HASHTABLE_LOOKUP, RANDOM_MULTINOMIAL and the fingerprint of
// LSH_PROJECTION.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "ops/fingerprint.h"
#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;

TEST(SelectTest, RescalesQuantizedInputs) {
  const OperandType type = OperandType::kTensorQuant8Asymm;
  OperationBuilder builder(OperationType::kSelect);
  builder
      .input(OperationBuilder::tensor(OperandType::kTensorBool8, {3}),
             std::vector<uint8_t>{1, 0, 5})
      .input(OperationBuilder::tensor(type, {3}, 1.0f, 0), std::vector<uint8_t>{10, 20, 200})
      .input(OperationBuilder::tensor(type, {3}, 0.5f, 100), std::vector<uint8_t>{1, 102, 3})
      .output(OperationBuilder::tensor(type, {}, 0.5f, 100));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<uint8_t>(), ElementsAre(120, 102, 255));
}

TEST(EmbeddingLookupTest, CopiesRowsAndChecksIndices) {
  for (const auto& [index, isValid] : {std::pair(1, true), std::pair(2, false),
                                       std::pair(-1, false), std::pair(INT32_MIN, false)}) {
    OperationBuilder builder(OperationType::kEmbeddingLookup);
    builder.input({2}, std::vector<int32_t>{0, index})
        .input({2, 2}, std::vector<float>{1, 2, 3, 4})
        .output();
    const Status status = builder.run();
    EXPECT_EQ(status.has_value(), isValid);
    if (isValid) EXPECT_THAT(builder.result<float>(), ElementsAre(1, 2, 3, 4));
  }
}

TEST(HashtableLookupTest, MissesAreZero) {
  OperationBuilder builder(OperationType::kHashtableLookup);
  builder.input({4}, std::vector<int32_t>{7, -1, 1, INT32_MAX})
      .input({2}, std::vector<int32_t>{1, 7})
      .input({2, 2}, std::vector<float>{1, 2, 3, 4})
      .output()
      .output(OperationBuilder::tensor(OperandType::kTensorQuant8Asymm, {}, 1.0f, 0));
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(0), ElementsAre(3, 4, 0, 0, 1, 2, 0, 0));
  EXPECT_THAT(builder.result<uint8_t>(1), ElementsAre(1, 0, 1, 0));
}

TEST(RandomMultinomialTest, FollowsTheProbabilitiesAndTheSeeds) {
  const auto draw = [](int32_t seed) {
    OperationBuilder builder(OperationType::kRandomMultinomial);
    builder
        .input({1, 3}, std::vector<float>{0.0f, 1.0986123f, -1e30f})  // 1 : 3 : 0
        .scalar(20000)
        .input({2}, std::vector<int32_t>{seed, 5})
        .output(OperandType::kTensorInt32);
    EXPECT_TRUE(builder.run());
    return builder.result<int32_t>();
  };
  const std::vector<int32_t> drawn = draw(1);
  EXPECT_NEAR(std::count(drawn.begin(), drawn.end(), 0), 5000, 300);
  EXPECT_NEAR(std::count(drawn.begin(), drawn.end(), 1), 15000, 300);
  EXPECT_EQ(draw(1), drawn);
  EXPECT_NE(draw(2), drawn);
}

uint64_t fingerprintOf(std::string_view text) {
  return fingerprint64({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// Inputs of every length take their path without reading past the end (sanitizers) and give
// different values.
TEST(FingerprintTest, AllLengthsDiffer) {
  const std::string text(300, 'a');
  std::vector<uint64_t> seen;
  for (size_t size = 0; size <= text.size(); ++size)
    seen.push_back(fingerprintOf(std::string(text, 0, size)));
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(fingerprintOf(""), 0x9AE16A3B2F90404Fu);
}

std::vector<float> sparseToDense(Dimensions indexShape, std::vector<int32_t> indices,
                                 std::vector<int32_t> shape, Dimensions valueShape,
                                 std::vector<float> values) {
  OperationBuilder builder(OperationType::kSparseToDense);
  graph::Operand value;
  value.type = OperandType::kTensorFloat32;
  value.isRankZeroTensor = valueShape.empty();
  value.dimensions = std::move(valueShape);
  graph::Operand index;
  index.type = OperandType::kTensorInt32;
  index.isRankZeroTensor = indexShape.empty();
  index.dimensions = std::move(indexShape);
  builder.input(index, std::move(indices))
      .input({static_cast<uint32_t>(shape.size())}, shape)
      .input(value, std::move(values))
      .input({1}, std::vector<float>{0.5f})
      .output();
  return builder.run() ? builder.result<float>() : std::vector<float>();
}

TEST(SparseToDenseTest, SetsThePlacesThatTheIndicesName) {
  EXPECT_THAT(sparseToDense({2, 2}, {0, 1, 1, 2}, {2, 3}, {2}, {7, 8}),
              ElementsAre(0.5f, 7, 0.5f, 0.5f, 0.5f, 8));
  EXPECT_THAT(sparseToDense({2}, {2, 0}, {4}, {}, {7}), ElementsAre(7, 0.5f, 7, 0.5f));
  EXPECT_THAT(sparseToDense({}, {1}, {3}, {}, {7}), ElementsAre(0.5f, 7, 0.5f));
  EXPECT_THAT(sparseToDense({2}, {1, 1}, {2}, {2}, {7, 8}), ElementsAre(0.5f, 8));
}

TEST(SparseToDenseTest, RefusesArgumentsThatDoNotFit) {
  EXPECT_THAT(sparseToDense({1}, {4}, {4}, {}, {7}), ElementsAre());
  EXPECT_THAT(sparseToDense({1}, {-1}, {4}, {}, {7}), ElementsAre());
  EXPECT_THAT(sparseToDense({2}, {0, 1}, {4}, {3}, {7, 8, 9}), ElementsAre());
  EXPECT_THAT(sparseToDense({1, 2}, {0, 1}, {4}, {}, {7}), ElementsAre());
  EXPECT_THAT(sparseToDense({1, 2}, {0, 1}, {2, -2}, {}, {7}), ElementsAre());
}

TEST(SparseToDenseTest, TheDefaultHasTheScaleOfTheValues) {
  const auto run = [](float scale) {
    constexpr auto kType = OperandType::kTensorQuant8AsymmSigned;
    OperationBuilder builder(OperationType::kSparseToDense);
    builder.input({1}, std::vector<int32_t>{1})
        .input({1}, std::vector<int32_t>{3})
        .input(OperationBuilder::tensor(kType, {1}, 0.5f, 0), std::vector<int8_t>{7})
        .input(OperationBuilder::tensor(kType, {1}, scale, 0), std::vector<int8_t>{-1})
        .output(OperationBuilder::tensor(kType, {}, 0.5f, 0));
    return builder.run() ? builder.result<int8_t>() : std::vector<int8_t>();
  };
  EXPECT_THAT(run(0.5f), ElementsAre(-1, 7, -1));
  EXPECT_THAT(run(0.25f), ElementsAre());
}

}  // namespace
}  // namespace hearth::ops
