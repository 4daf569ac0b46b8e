// SPDX-License-Identifier: Apache-2.0
// Attention as the decompositions of LiteRT's composites odml.sdpa_transposed and odml.runtime_bmm
// write it: heads that share keys are rows of one matrix, or keys and values are repeated for them;
// a mask of booleans is repeated as numbers; and 0, made of an input of integers, is added to each
// product.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

constexpr float kTolerance = 3e-6f;
constexpr uint32_t kGroups = 2;
constexpr uint32_t kHeadsOfGroup = 3;
constexpr uint32_t kKeys = 40;
constexpr uint32_t kSize = 12;
constexpr uint32_t kParameters = 7;

struct Composite {
  uint32_t queries = 1;
  bool arePacked = false;      // the heads of a group, as rows of one matrix
  bool areTransposed = false;  // keys and values, by an operation of their own
  bool isMaskRead = false;     // as numbers, by an output of the model
};

std::vector<int32_t> shapeOf(const Dimensions& dimensions) {
  return {dimensions.begin(), dimensions.end()};
}

class CompositeWriter {
 public:
  explicit CompositeWriter(const Composite& composite) : composite_(composite) {
    queries_ = builder_.input(kFloat, {1, kGroups * kHeadsOfGroup, composite.queries, kSize});
    keys_ = builder_.input(kFloat, {1, kGroups, kKeys, kSize});
    values_ = builder_.input(kFloat, {1, kGroups, kSize, kKeys});
    mask_ = builder_.input(OperandType::kTensorBool8, {1, 1, composite.queries, kKeys});
    parameters_ = builder_.input(OperandType::kTensorInt32, {1, 1, 1, kParameters});
  }

  graph::Model write() {
    const uint32_t rows = kHeadsOfGroup * composite_.queries;
    uint32_t queries = queries_;
    uint32_t keys = keys_;
    uint32_t values = values_;
    uint32_t mask = mask_;
    Dimensions scores = {1, kGroups * kHeadsOfGroup, composite_.queries, kKeys};
    if (composite_.arePacked) {
      scores = {1, kGroups, rows, kKeys};
      queries = reshape(kFloat, queries, {1, kGroups, rows, kSize});
      mask = reshape(OperandType::kTensorBool8, repeatedMask(), {1, 1, rows, kKeys});
    } else {
      keys = repeatedMatrices(keys, kKeys, kSize);
      values = repeatedMatrices(values, kSize, kKeys);
    }
    const uint32_t products = withZero(product(queries, keys, kKeys, kSize, scores), scores);
    const uint32_t hidden = builder_.constant(kFloat, {1}, std::vector<float>{-10000.0f});
    const uint32_t chosen = builder_.temporary(kFloat, scores);
    builder_.operation(OperationType::kSelectV2, {mask, products, hidden}, {chosen});
    const uint32_t weights = builder_.temporary(kFloat, scores);
    builder_.operation(OperationType::kSoftmax, {chosen, builder_.scalar(1.0f)}, {weights});
    Dimensions shape = scores;
    shape.back() = kSize;
    const uint32_t mixed = withZero(product(weights, values, kSize, kKeys, shape), shape);
    const Dimensions given = {1, kGroups * kHeadsOfGroup, composite_.queries, kSize};
    const uint32_t output = builder_.output(kFloat, given);
    builder_.operation(OperationType::kReshape, {mixed, ints(shapeOf(given))}, {output});
    return builder_.model();
  }

 private:
  uint32_t ints(const std::vector<int32_t>& numbers) {
    return builder_.constant(OperandType::kTensorInt32, {static_cast<uint32_t>(numbers.size())},
                             numbers);
  }
  uint32_t reshape(OperandType type, uint32_t operand, const Dimensions& dimensions) {
    const uint32_t made = builder_.temporary(type, dimensions);
    builder_.operation(OperationType::kReshape, {operand, ints(shapeOf(dimensions))}, {made});
    return made;
  }
  // With the transpose of the right matrices, [.., rows, columns].
  uint32_t product(uint32_t left, uint32_t right, uint32_t rows, uint32_t columns,
                   const Dimensions& dimensions) {
    if (composite_.areTransposed) {
      const uint32_t made = builder_.temporary(kFloat, {1, dimensions[1], columns, rows});
      builder_.operation(OperationType::kTranspose, {right, ints({0, 1, 3, 2})}, {made});
      right = made;
    }
    const uint32_t made = builder_.temporary(kFloat, dimensions);
    builder_.operation(
        OperationType::kBatchMatmul,
        {left, right, builder_.scalar(false), builder_.scalar(!composite_.areTransposed)}, {made});
    return made;
  }
  uint32_t withZero(uint32_t operand, const Dimensions& dimensions) {
    const auto one = [&](OperandType type) {
      return builder_.temporary(type, {1, 1, 1, 1});
    };
    const uint32_t sum = one(OperandType::kTensorInt32);
    builder_.operation(OperationType::kReduceSum,
                       {parameters_, ints({0, 1, 2, 3}), builder_.scalar(true)}, {sum});
    const uint32_t zero = one(OperandType::kTensorInt32);
    builder_.operation(OperationType::kMul, {sum, ints({0}), builder_.scalar(0)}, {zero});
    const uint32_t number = one(kFloat);
    builder_.operation(OperationType::kCast, {zero}, {number});
    const uint32_t made = builder_.temporary(kFloat, dimensions);
    builder_.operation(OperationType::kAdd, {operand, number, builder_.scalar(0)}, {made});
    return made;
  }
  uint32_t repeatedMask() {
    const uint32_t once = builder_.temporary(kFloat, {1, 1, composite_.queries, kKeys});
    builder_.operation(OperationType::kCast, {mask_}, {once});
    const Dimensions dimensions = {1, kHeadsOfGroup, composite_.queries, kKeys};
    const uint32_t numbers = composite_.isMaskRead ? builder_.output(kFloat, dimensions)
                                                   : builder_.temporary(kFloat, dimensions);
    std::vector<uint32_t> parts(kHeadsOfGroup, once);
    parts.push_back(builder_.scalar(1));
    builder_.operation(OperationType::kConcatenation, parts, {numbers});
    const uint32_t zero = builder_.constant(kFloat, {1}, std::vector<float>{0});
    const uint32_t booleans = builder_.temporary(OperandType::kTensorBool8, dimensions);
    builder_.operation(OperationType::kNotEqual, {numbers, zero}, {booleans});
    return booleans;
  }
  uint32_t repeatedMatrices(uint32_t operand, uint32_t rows, uint32_t columns) {
    const Dimensions dimensions = {1, kGroups, kHeadsOfGroup, rows, columns};
    const uint32_t once = reshape(kFloat, operand, {1, kGroups, 1, rows, columns});
    const uint32_t made = builder_.temporary(kFloat, dimensions);
    builder_.operation(OperationType::kBroadcastTo, {once, ints(shapeOf(dimensions))}, {made});
    return reshape(kFloat, made, {1, kGroups * kHeadsOfGroup, rows, columns});
  }

  const Composite composite_;
  ModelBuilder builder_;
  uint32_t queries_ = 0, keys_ = 0, values_ = 0, mask_ = 0, parameters_ = 0;
};

// Of queries, keys, values, mask and parameters. The first `open` keys are seen by the first query,
// one more by the next, and so on; those that none sees have `rest`.
std::vector<Bytes> inputsOf(const Composite& composite, uint32_t open, float rest) {
  std::vector<float> keys = randomFloats(size_t{kGroups} * kKeys * kSize, 2);
  std::vector<float> values = randomFloats(keys.size(), 3);
  const uint32_t used = open + composite.queries - 1;
  for (uint32_t group = 0; group < kGroups; ++group)
    for (uint32_t key = used; key < kKeys; ++key)
      for (uint32_t i = 0; i < kSize; ++i) {
        keys[(group * kKeys + key) * kSize + i] = rest;
        values[(group * kSize + i) * kKeys + key] = rest;
      }
  Bytes mask;
  for (uint32_t query = 0; query < composite.queries; ++query)
    for (uint32_t key = 0; key < kKeys; ++key) mask.push_back(key < open + query ? 1 : 0);
  return {floatsFor({kGroups * kHeadsOfGroup, composite.queries, kSize}, 1), bytesOf(keys),
          bytesOf(values), mask, bytesOf(std::vector<int32_t>(kParameters, 17))};
}

// The kernels of the operations of a type, each once.
std::vector<std::string> kernelsOf(const graph::Model& model, OperationType type) {
  const auto support = createCpuDevice()->explainOperations(model);
  if (!support) return {support.error().toString()};
  std::vector<std::string> kernels;
  for (size_t i = 0; i < support->size(); ++i)
    if (model.main().operations[i].type == type &&
        !std::ranges::contains(kernels, (*support)[i].kernel))
      kernels.push_back((*support)[i].kernel);
  return kernels;
}

// All forms, for a token and for a part of a prompt.
std::vector<Composite> allForms() {
  std::vector<Composite> all;
  for (const uint32_t queries : {1, 9})
    for (const bool arePacked : {false, true})
      for (const bool areTransposed : {false, true})
        all.push_back({.queries = queries, .arePacked = arePacked, .areTransposed = areTransposed});
  return all;
}

TEST(CompositeAttentionTest, IsOneNodeThatGivesWhatItsOperationsGive) {
  for (const Composite& composite : allForms()) {
    const bool arePacked = composite.arePacked;
    SCOPED_TRACE(testing::Message()
                 << composite.queries << " " << arePacked << " " << composite.areTransposed);
    const graph::Model model = CompositeWriter(composite).write();
    EXPECT_EQ(differenceFromReference(model, inputsOf(composite, 11, 1.0f), nullptr, kTolerance),
              "");
    using Kernels = std::vector<std::string>;
    EXPECT_EQ(kernelsOf(model, OperationType::kBatchMatmul), (Kernels{"none", "own"}));
    for (const OperationType type : {OperationType::kSoftmax, OperationType::kSelectV2})
      EXPECT_EQ(kernelsOf(model, type), Kernels{"none"});
    for (const OperationType type : {OperationType::kConcatenation, OperationType::kNotEqual})
      EXPECT_EQ(kernelsOf(model, type), arePacked ? Kernels{"none"} : Kernels{});
    EXPECT_EQ(kernelsOf(model, OperationType::kBroadcastTo),
              arePacked ? Kernels{} : Kernels{"none"});
    EXPECT_EQ(kernelsOf(model, OperationType::kTranspose),
              composite.areTransposed ? Kernels{"none"} : Kernels{});
  }
}

TEST(CompositeAttentionTest, OnlyWhatIsFilledIsRead) {
  for (const Composite& composite : allForms()) {
    const graph::Model model = CompositeWriter(composite).write();
    const auto clean = runBoth(model, inputsOf(composite, 11, 0.0f));
    const auto unwritten =
        runBoth(model, inputsOf(composite, 11, std::numeric_limits<float>::quiet_NaN()));
    ASSERT_TRUE(clean && unwritten);
    EXPECT_EQ(unwritten->made, clean->made);
  }
}

TEST(CompositeAttentionTest, ARepetitionThatIsReadElsewhereIsComputed) {
  const Composite composite{.queries = 3, .arePacked = true, .isMaskRead = true};
  const graph::Model model = CompositeWriter(composite).write();
  EXPECT_EQ(differenceFromReference(model, inputsOf(composite, 5, 1.0f), nullptr, kTolerance), "");
  EXPECT_EQ(kernelsOf(model, OperationType::kNotEqual), std::vector<std::string>{"none"});
}

// The numbers of one attention's keys are those of a mask of another: what the one repeats for its
// heads the other reads as it is.
TEST(CompositeAttentionTest, WhatANodeReadsIsNotWithdrawn) {
  constexpr uint32_t kCount = 6;
  ModelBuilder builder;
  const uint32_t once = builder.input(kFloat, {1, 1, kCount / 2, kCount});
  const uint32_t repeated = builder.temporary(kFloat, {1, 1, kCount, kCount});
  builder.operation(OperationType::kConcatenation, {once, once, builder.scalar(2)}, {repeated});
  uint32_t operand = builder.input(kFloat, {1, 1, kCount, kCount});
  const uint32_t keys = builder.input(kFloat, {1, 1, kCount, kCount});
  const auto attention = [&](uint32_t key, std::optional<uint32_t> mask, uint32_t output) {
    const auto temporary = [&] {
      return builder.temporary(kFloat, {1, 1, kCount, kCount});
    };
    uint32_t scores = temporary();
    builder.operation(OperationType::kBatchMatmul,
                      {operand, key, builder.scalar(false), builder.scalar(true)}, {scores});
    if (mask) {
      const uint32_t sum = temporary();
      builder.operation(OperationType::kAdd, {scores, *mask, builder.scalar(0)}, {sum});
      scores = sum;
    }
    const uint32_t weights = temporary();
    builder.operation(OperationType::kSoftmax, {scores, builder.scalar(1.0f)}, {weights});
    builder.operation(OperationType::kBatchMatmul,
                      {weights, keys, builder.scalar(false), builder.scalar(false)}, {output});
    operand = output;
  };
  attention(repeated, std::nullopt, builder.temporary(kFloat, {1, 1, kCount, kCount}));
  attention(keys, repeated, builder.output(kFloat, {1, 1, kCount, kCount}));
  EXPECT_EQ(differenceFromReference(builder.model(),
                                    {bytesOf(randomFloats(kCount * kCount / 2, 1)),
                                     bytesOf(randomFloats(kCount * kCount, 2)),
                                     bytesOf(randomFloats(kCount * kCount, 3))},
                                    "own", kTolerance),
            "");
}

}  // namespace
}  // namespace hearth::cpu
