// SPDX-License-Identifier: Apache-2.0
// Attention that is written out as products, sums and SOFTMAX gives what its operations give one by
// one, and is one node where nothing else reads a part of it.
#include "drivers/cpu/lowering/attention_chain.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// What exporters of language models write where a position is hidden.
constexpr float kHidden = -45824.0f;
constexpr float kTolerance = 3e-6f;

enum class Mask {
  kNone,
  kRandom,
  kCausal,
  kPadded,
  kWindow,
  kHoles,
  kHiddenRows,
  kScalar,
};

// Where a shape changes, in front of an operation.
struct Reshapes {
  bool beforeScale = false, beforeMask = false, beforeSoftmax = false, beforeValues = false;
};

// Heads are groups times heads of each group. Those of a group share keys and values.
struct Chain {
  uint32_t batches = 1, groups = 1, headsOfGroup = 1, queries = 1, keys = 1, size = 1;
  uint32_t valueSize = 1;
  bool areValuesTransposed = false;
  bool isScaled = false;
  int cap = 0;               // 0 none, 1 divided by it before TANH, 2 multiplied
  bool isMaskFirst = false;  // as operand of the sum
  // 0 numbers that are added, 1 booleans that are true where a product counts, 2 the others.
  int maskKind = 0;
  bool isMaskRepeated = false;      // by a CONCATENATION, for the heads of a group
  bool isOneMatrixPerHead = false;  // of queries, so that the products repeat keys
  float hidden = kNothing;
  Mask mask = Mask::kNone;
  Reshapes reshapes;
  // Which intermediate result is an output of the model, too: 0 none, 1 the products, 2 the sums, 3
  // the weights.
  int seen = 0;
};

struct ChainModel {
  graph::Model model;
  std::vector<Bytes> inputs;
};

// Numbers whose products are exact, so that sums in any order are.
std::vector<float> exactFloats(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random() % 9) / 4 - 1;
  return values;
}

// The mask of each query, [queries, keys].
std::vector<float> maskOf(const Chain& c, std::mt19937* random) {
  std::vector<float> mask = randomFloats(size_t{c.queries} * c.keys, (*random)());
  const uint32_t first = c.keys > c.queries ? (*random)() % (c.keys - c.queries + 1) : 0;
  for (uint32_t q = 0; q < c.queries; ++q) {
    for (uint32_t k = 0; k < c.keys; ++k) {
      bool isHidden = false;
      switch (c.mask) {
        case Mask::kCausal:
          isHidden = k > first + q;
          break;
        case Mask::kPadded:
          isHidden = k >= (c.keys + 1) / 2;
          break;
        case Mask::kWindow:
          isHidden = k > first + q || k + 3 < first + q;
          break;
        case Mask::kHoles:
          isHidden = (*random)() % 3 == 0;
          break;
        case Mask::kHiddenRows:
          isHidden = q % 2 == 0 || k > q;
          break;
        default:
          break;
      }
      if (c.mask != Mask::kRandom && c.mask != Mask::kScalar) mask[q * c.keys + k] = 0;
      if (isHidden) mask[q * c.keys + k] = c.hidden;
    }
  }
  return mask;
}

ChainModel makeChain(const Chain& c, unsigned seed) {
  std::mt19937 random(seed);
  ChainModel made;
  ModelBuilder builder;
  const uint32_t rows = c.headsOfGroup * c.queries;
  const uint32_t heads = c.groups * c.headsOfGroup;
  const Dimensions grouped = {c.batches, c.groups, rows, c.keys};
  const Dimensions byHead = {c.batches, heads, c.queries, c.keys};
  const auto withLast = [](Dimensions dimensions, uint32_t last) {
    dimensions.back() = last;
    return dimensions;
  };
  const auto input = [&](const Dimensions& dimensions) {
    made.inputs.push_back(bytesOf(exactFloats(countOf(dimensions), random())));
    return builder.input(kFloat, dimensions);
  };
  // Products of each head repeat keys and values, if there is one group.
  const bool isRepeated = c.isOneMatrixPerHead && c.groups == 1;
  const Dimensions products = isRepeated ? byHead : grouped;
  const uint32_t q = input(withLast(products, c.size));
  const uint32_t k = input({c.batches, c.groups, c.keys, c.size});
  const uint32_t v =
      input(c.areValuesTransposed ? Dimensions{c.batches, c.groups, c.valueSize, c.keys}
                                  : Dimensions{c.batches, c.groups, c.keys, c.valueSize});
  Dimensions now = products;
  const auto result = [&](bool isSeen) {
    return isSeen ? builder.output(kFloat, now) : builder.temporary(kFloat, now);
  };
  const auto reshape = [&](uint32_t operand, bool isWanted) {
    if (!isWanted) return operand;
    now = now == grouped ? byHead : grouped;
    const std::vector<int32_t> shape(now.begin(), now.end());
    const uint32_t to = builder.temporary(kFloat, now);
    builder.operation(OperationType::kReshape,
                      {operand, builder.constant(OperandType::kTensorInt32, {4}, shape)}, {to});
    return to;
  };
  uint32_t operand = result(c.seen == 1);
  builder.operation(OperationType::kBatchMatmul,
                    {q, k, builder.scalar(false), builder.scalar(true)}, {operand});
  operand = reshape(operand, c.reshapes.beforeScale);
  if (c.isScaled) {
    const uint32_t factor = builder.constant(kFloat, {1}, std::vector<float>{0.375f});
    const uint32_t scaled = result(false);
    builder.operation(OperationType::kMul, {operand, factor, builder.scalar(0)}, {scaled});
    operand = scaled;
  }
  if (c.cap != 0) {
    const auto number = [&](float value) {
      return builder.constant(kFloat, {1}, std::vector<float>{value});
    };
    constexpr float kCap = 1.5f;
    const uint32_t ratio = result(false);
    const uint32_t bounded = result(false);
    const uint32_t capped = result(false);
    if (c.cap == 1)
      builder.operation(OperationType::kDiv, {operand, number(kCap), builder.scalar(0)}, {ratio});
    else
      builder.operation(OperationType::kMul, {number(1 / kCap), operand, builder.scalar(0)},
                        {ratio});
    builder.operation(OperationType::kTanh, {ratio}, {bounded});
    builder.operation(OperationType::kMul, {bounded, number(kCap), builder.scalar(0)}, {capped});
    operand = capped;
  }
  operand = reshape(operand, c.reshapes.beforeMask);
  if (c.maskKind != 0) {
    const bool isOpenTrue = c.maskKind == 1;
    const std::vector<float> once = maskOf(c, &random);
    Bytes open;
    for (uint32_t head = 0; head < (now == byHead ? 1 : c.headsOfGroup); ++head)
      for (const float number : once)
        open.push_back(static_cast<uint8_t>((number > -0.75f) == isOpenTrue ? 1 : 0));
    made.inputs.push_back(open);
    const uint32_t mask =
        builder.input(OperandType::kTensorBool8, now == byHead ? Dimensions{1, 1, c.queries, c.keys}
                                                               : Dimensions{rows, c.keys});
    const uint32_t hidden = builder.constant(kFloat, {1}, std::vector<float>{c.hidden});
    const uint32_t chosen = result(c.seen == 2);
    builder.operation(OperationType::kSelectV2,
                      {mask, isOpenTrue ? operand : hidden, isOpenTrue ? hidden : operand},
                      {chosen});
    operand = chosen;
  } else if (c.mask != Mask::kNone) {
    const std::vector<float> once = maskOf(c, &random);
    uint32_t mask = 0;
    if (c.mask == Mask::kScalar) {
      made.inputs.push_back(bytesOf(std::vector<float>{0.5f}));
      mask = builder.input(kFloat, {1, 1});
    } else if (now == byHead) {
      made.inputs.push_back(bytesOf(once));
      mask = builder.input(kFloat, {1, 1, c.queries, c.keys});
    } else if (c.isMaskRepeated) {
      made.inputs.push_back(bytesOf(once));
      const uint32_t part = builder.input(kFloat, {1, 1, c.queries, c.keys});
      std::vector<uint32_t> parts(c.headsOfGroup, part);
      parts.push_back(builder.scalar(2));
      mask = builder.temporary(kFloat, {1, 1, rows, c.keys});
      builder.operation(OperationType::kConcatenation, parts, {mask});
    } else {
      std::vector<float> all;
      for (uint32_t head = 0; head < c.headsOfGroup; ++head)
        all.insert(all.end(), once.begin(), once.end());
      made.inputs.push_back(bytesOf(all));
      mask = builder.input(kFloat, {rows, c.keys});
    }
    const uint32_t sum = result(c.seen == 2);
    builder.operation(
        OperationType::kAdd,
        {c.isMaskFirst ? mask : operand, c.isMaskFirst ? operand : mask, builder.scalar(0)}, {sum});
    operand = sum;
  }
  operand = reshape(operand, c.reshapes.beforeSoftmax);
  const uint32_t weights = result(c.seen == 3);
  builder.operation(OperationType::kSoftmax, {operand, builder.scalar(1.0f)}, {weights});
  operand = reshape(weights, c.reshapes.beforeValues);
  // The values of each group fit the grouped shape, and the other one where they are repeated.
  if (now == byHead && byHead != grouped && c.groups != 1) operand = reshape(operand, true);
  builder.operation(OperationType::kBatchMatmul,
                    {operand, v, builder.scalar(false), builder.scalar(c.areValuesTransposed)},
                    {builder.output(kFloat, withLast(now, c.valueSize))});
  made.model = builder.model();
  return made;
}

std::string difference(const Chain& chain, unsigned seed, const char* kernel) {
  const ChainModel made = makeChain(chain, seed);
  return differenceFromReference(made.model, made.inputs, kernel, kTolerance);
}

// Chains of all kinds. Sizes are rarely multiples of a vector.
Chain randomChain(std::mt19937* random) {
  const auto below = [&](uint32_t count) {
    return (*random)() % count;
  };
  Chain chain;
  chain.batches = 1 + below(2);
  chain.groups = 1 + below(3);
  chain.headsOfGroup = 1 + below(4);
  chain.queries = 1 + below(below(2) == 0 ? 2 : 20);
  chain.keys = 1 + below(below(2) == 0 ? 12 : 90);
  chain.size = 1 + below(70);
  chain.valueSize = 1 + below(70);
  chain.areValuesTransposed = below(2) != 0;
  chain.isScaled = below(2) != 0;
  chain.isMaskFirst = below(2) != 0;
  chain.isMaskRepeated = below(2) != 0;
  chain.isOneMatrixPerHead = below(2) != 0;
  chain.hidden =
      std::array{kNothing, kHidden, -1e9f, std::numeric_limits<float>::lowest()}[below(4)];
  chain.mask = static_cast<Mask>(below(8));
  chain.cap = static_cast<int>(below(3));
  chain.maskKind = static_cast<int>(below(6) / 2);
  chain.reshapes = {below(4) == 0, below(4) == 0, below(4) == 0, below(4) == 0};
  return chain;
}

TEST(AttentionChainTest, RandomOnesAreLikeTheirOperations) {
  std::mt19937 random(40);
  for (unsigned i = 0; i < 300; ++i) {
    const Chain chain = randomChain(&random);
    SCOPED_TRACE(testing::Message()
                 << i << ": " << chain.batches << " batches, " << chain.groups << " groups of "
                 << chain.headsOfGroup << " heads, " << chain.queries << " queries, " << chain.keys
                 << " keys of " << chain.size << ", values of " << chain.valueSize << ", mask "
                 << static_cast<int>(chain.mask) << " of kind " << chain.maskKind << ", cap "
                 << chain.cap);
    ASSERT_EQ(difference(chain, i, "own"), "");
  }
}

// Rows of the sizes of a language model: a prompt, and a token that is decoded.
TEST(AttentionChainTest, OfALanguageModelIsOneNode) {
  for (const uint32_t queries : {1, 60}) {
    Chain chain;
    chain.groups = 3;
    chain.headsOfGroup = 3;
    chain.queries = queries;
    chain.keys = 300;
    chain.size = chain.valueSize = 64;
    chain.areValuesTransposed = true;
    chain.isMaskRepeated = true;
    chain.mask = Mask::kCausal;
    chain.hidden = kHidden;
    EXPECT_EQ(difference(chain, 1, "own"), "");
  }
}

TEST(AttentionChainTest, APartThatIsReadElsewhereIsComputed) {
  for (const int seen : {1, 2, 3}) {
    SCOPED_TRACE(seen);
    Chain chain;
    chain.queries = 5;
    chain.keys = 40;
    chain.size = 12;
    chain.valueSize = 9;
    chain.mask = Mask::kCausal;
    chain.seen = seen;
    EXPECT_EQ(difference(chain, 2, "xnnpack"), "");
  }
}

// Two layers with one mask, whose rows are repeated once for both.
TEST(AttentionChainTest, LayersShareARepeatedMask) {
  constexpr uint32_t kQueries = 4;
  constexpr uint32_t kKeys = 30;
  constexpr uint32_t kSize = 8;
  for (const bool isMaskRead : {false, true}) {
    ModelBuilder builder;
    const uint32_t mask = builder.input(kFloat, {1, 1, kQueries, kKeys});
    const uint32_t keys = builder.input(kFloat, {1, 1, kKeys, kSize});
    uint32_t operand = builder.input(kFloat, {1, 1, 2 * kQueries, kSize});
    const Dimensions scores = {1, 1, 2 * kQueries, kKeys};
    const uint32_t repeated =
        isMaskRead ? builder.output(kFloat, scores) : builder.temporary(kFloat, scores);
    builder.operation(OperationType::kConcatenation, {mask, mask, builder.scalar(2)}, {repeated});
    for (const bool isLast : {false, true}) {
      const uint32_t products = builder.temporary(kFloat, scores);
      const uint32_t sums = builder.temporary(kFloat, scores);
      const uint32_t weights = builder.temporary(kFloat, scores);
      const Dimensions shape = {1, 1, 2 * kQueries, kSize};
      const uint32_t result =
          isLast ? builder.output(kFloat, shape) : builder.temporary(kFloat, shape);
      builder.operation(OperationType::kBatchMatmul,
                        {operand, keys, builder.scalar(false), builder.scalar(true)}, {products});
      builder.operation(OperationType::kAdd, {products, repeated, builder.scalar(0)}, {sums});
      builder.operation(OperationType::kSoftmax, {sums, builder.scalar(1.0f)}, {weights});
      builder.operation(OperationType::kBatchMatmul,
                        {weights, keys, builder.scalar(false), builder.scalar(false)}, {result});
      operand = result;
    }
    EXPECT_EQ(differenceFromReference(builder.model(),
                                      {bytesOf(randomFloats(kQueries * kKeys, 1)),
                                       bytesOf(randomFloats(kKeys * kSize, 2)),
                                       bytesOf(randomFloats(2 * kQueries * kSize, 3))},
                                      "own", kTolerance),
              "");
  }
}

// The mask is added where a row of scores is two rows.
TEST(AttentionChainTest, AMaskForHalvesOfRowsIsAddedByItself) {
  constexpr uint32_t kRows = 4;
  constexpr uint32_t kKeys = 6;
  constexpr uint32_t kSize = 5;
  ModelBuilder builder;
  const uint32_t queries = builder.input(kFloat, {1, kRows, kSize});
  const uint32_t keys = builder.input(kFloat, {1, kKeys, kSize});
  const uint32_t mask = builder.input(kFloat, {1, 2 * kRows, kKeys / 2});
  const auto reshaped = [&](uint32_t operand, const Dimensions& dimensions) {
    const std::vector<int32_t> shape(dimensions.begin(), dimensions.end());
    const uint32_t result = builder.temporary(kFloat, dimensions);
    builder.operation(OperationType::kReshape,
                      {operand, builder.constant(OperandType::kTensorInt32, {3}, shape)}, {result});
    return result;
  };
  const uint32_t products = builder.temporary(kFloat, {1, kRows, kKeys});
  const uint32_t sums = builder.temporary(kFloat, {1, 2 * kRows, kKeys / 2});
  const uint32_t weights = builder.temporary(kFloat, {1, kRows, kKeys});
  builder.operation(OperationType::kBatchMatmul,
                    {queries, keys, builder.scalar(false), builder.scalar(true)}, {products});
  builder.operation(OperationType::kAdd,
                    {reshaped(products, {1, 2 * kRows, kKeys / 2}), mask, builder.scalar(0)},
                    {sums});
  builder.operation(OperationType::kSoftmax,
                    {reshaped(sums, {1, kRows, kKeys}), builder.scalar(1.0f)}, {weights});
  builder.operation(OperationType::kBatchMatmul,
                    {weights, keys, builder.scalar(false), builder.scalar(false)},
                    {builder.output(kFloat, {1, kRows, kSize})});
  EXPECT_EQ(differenceFromReference(
                builder.model(),
                {bytesOf(randomFloats(kRows * kSize, 1)), bytesOf(randomFloats(kKeys * kSize, 2)),
                 bytesOf(randomFloats(kRows * kKeys, 3))},
                "xnnpack", kTolerance),
            "");
}

// One row of queries over three keys, with a mask that is not a number, infinite, or hides all.
TEST(AttentionChainTest, StrangeMasksGiveWhatSoftmaxGives) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& mask : {std::vector<float>{kNan, 0, 0},
                                         {kInfinity, 0, 0},
                                         {kInfinity, kInfinity, kNothing},
                                         {kNothing, kNothing, kNothing},
                                         {kHidden, kHidden, kHidden},
                                         {kNothing, kNan, kNothing},
                                         {3e38f, 3e38f, -3e38f},
                                         {-16384, 0, -16383.0f},
                                         {100, 0, -20}}) {
    Chain chain;
    chain.keys = 3;
    chain.size = chain.valueSize = 5;
    chain.mask = Mask::kRandom;
    ChainModel made = makeChain(chain, 3);
    made.inputs[3] = bytesOf(mask);
    EXPECT_EQ(differenceFromReference(made.model, made.inputs, "own", kTolerance), "")
        << mask[0] << " " << mask[1] << " " << mask[2];
  }
}

TEST(AttentionChainTest, NanOfAnOpenKeyOrValueStays) {
  for (const size_t input : {0, 1, 2}) {
    for (const uint32_t queries : {2, 24}) {
      Chain chain;
      chain.queries = queries;
      chain.keys = 40;
      chain.size = chain.valueSize = 20;
      chain.areValuesTransposed = true;
      ChainModel made = makeChain(chain, 4);
      std::memcpy(made.inputs[input].data() + 7 * sizeof(float), &kNan, sizeof kNan);
      EXPECT_EQ(differenceFromReference(made.model, made.inputs, "own", kTolerance), "");
    }
  }
}

// The rest of a cache is whatever was there.
TEST(AttentionChainTest, HiddenKeysAndValuesAreNotRead) {
  for (const uint32_t queries : {1, 20}) {
    Chain chain;
    chain.queries = queries;
    chain.keys = 60;
    chain.size = chain.valueSize = 16;
    chain.mask = Mask::kPadded;
    chain.hidden = kHidden;
    ChainModel made = makeChain(chain, 5);
    const auto clean = runBoth(made.model, made.inputs);
    ASSERT_TRUE(clean) << clean.error().toString();
    for (const size_t input : {1, 2}) {
      const std::vector<float> unwritten(30 * 16, kNan);
      std::memcpy(made.inputs[input].data() + unwritten.size() * sizeof(float), unwritten.data(),
                  unwritten.size() * sizeof(float));
    }
    const auto partly = runBoth(made.model, made.inputs);
    ASSERT_TRUE(partly) << partly.error().toString();
    EXPECT_EQ(partly->made, clean->made);
  }
}

// A SOFTMAX of another temperature, sums that are clamped, and keys that are transposed.
TEST(AttentionChainTest, OthersAreComputedOneByOne) {
  constexpr uint32_t kRows = 6;
  constexpr uint32_t kKeys = 10;
  constexpr uint32_t kSize = 4;
  for (const int which : {0, 1, 2}) {
    ModelBuilder builder;
    const uint32_t q = builder.input(kFloat, {1, kRows, kSize});
    const uint32_t k = which == 2 ? builder.input(kFloat, {1, kSize, kKeys})
                                  : builder.input(kFloat, {1, kKeys, kSize});
    const uint32_t v = builder.input(kFloat, {1, kKeys, kSize});
    const uint32_t mask = builder.input(kFloat, {kKeys});
    const Dimensions scores = {1, kRows, kKeys};
    const uint32_t products = builder.temporary(kFloat, scores);
    const uint32_t sums = builder.temporary(kFloat, scores);
    const uint32_t weights = builder.temporary(kFloat, scores);
    builder.operation(OperationType::kBatchMatmul,
                      {q, k, builder.scalar(false), builder.scalar(which != 2)}, {products});
    builder.operation(OperationType::kAdd, {products, mask, builder.scalar(which == 1 ? 1 : 0)},
                      {sums});
    builder.operation(OperationType::kSoftmax, {sums, builder.scalar(which == 0 ? 0.5f : 1.0f)},
                      {weights});
    builder.operation(OperationType::kBatchMatmul,
                      {weights, v, builder.scalar(false), builder.scalar(false)},
                      {builder.output(kFloat, {1, kRows, kSize})});
    EXPECT_EQ(differenceFromReference(
                  builder.model(),
                  {bytesOf(randomFloats(kRows * kSize, 1)), bytesOf(randomFloats(kKeys * kSize, 2)),
                   bytesOf(randomFloats(kKeys * kSize, 3)), bytesOf(randomFloats(kKeys, 4))},
                  "xnnpack", kTolerance),
              "");
  }
}

}  // namespace
}  // namespace hearth::cpu
