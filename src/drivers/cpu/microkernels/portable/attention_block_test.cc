// SPDX-License-Identifier: Apache-2.0
// Blocks of attention give the same results with each instruction set.
#include "drivers/cpu/microkernels/portable/attention_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "drivers/cpu/testing/reference_comparison.h"
#include "hal/cts/guarded_memory.h"

namespace hearth::cpu {
namespace {

// Numbers before a page that cannot be read.
class GuardedFloats {
 public:
  explicit GuardedFloats(const std::vector<float>& values)
      : memory_(values.size() * sizeof(float), hal::cts::GuardedMemory::Place::kAtEnd) {
    std::ranges::copy(values, data());
  }
  float* data() const { return reinterpret_cast<float*>(memory_.data()); }

 private:
  hal::cts::GuardedMemory memory_;
};

struct Shape {
  uint32_t rows, size, keys, valueSize;
  KeyRange range;        // of keys that the masks leave
  uint32_t firstPacked;  // at most range.begin
  bool isPacked;
  bool isTransposed = false;  // of the values
};

class AttentionBlockTest : public testing::TestWithParam<Shape> {};

TEST_P(AttentionBlockTest, EachLevelIsRight) {
  const Shape& s = GetParam();
  ops::AttentionParameters p;
  p.batches = p.heads = p.groups = 1;
  p.queries = s.rows;
  p.size = s.size;
  p.keys = s.keys;
  p.valueSize = s.valueSize;
  p.scale = 0.7f;
  const std::vector<float> queries = randomFloats(size_t{s.rows} * s.size, 1);
  std::vector<float> keys = randomFloats(size_t{s.keys} * s.size, 2);
  std::vector<float> values = randomFloats(size_t{s.keys} * s.valueSize, 3);
  const std::vector<float> mask = randomFloats(s.keys, 4);
  // The expected results are computed in double, position by position.
  std::vector<double> expected(size_t{s.rows} * s.valueSize);
  for (uint32_t r = 0; r < s.rows; ++r) {
    std::vector<double> weights(s.keys);
    double sum = 0.0;
    for (uint32_t k = s.range.begin; k < s.range.end; ++k) {
      double product = 0.0;
      for (uint32_t i = 0; i < s.size; ++i)
        product += double{queries[r * s.size + i]} * keys[k * s.size + i];
      weights[k] = std::exp(p.scale * product + mask[k]);
      sum += weights[k];
    }
    for (uint32_t k = s.range.begin; k < s.range.end; ++k)
      for (uint32_t i = 0; i < s.valueSize; ++i)
        expected[r * s.valueSize + i] += weights[k] / sum * values[k * s.valueSize + i];
  }
  // Keys and values outside the range are not read.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (uint32_t k = 0; k < s.keys; ++k) {
    if (k >= s.range.begin && k < s.range.end) continue;
    std::fill_n(keys.begin() + k * s.size, s.size, nan);
    std::fill_n(values.begin() + k * s.valueSize, s.valueSize, nan);
  }
  const GuardedFloats guardedKeys(keys);
  if (s.isTransposed) {
    const std::vector<float> whole = values;
    for (uint32_t k = 0; k < s.keys; ++k)
      for (uint32_t i = 0; i < s.valueSize; ++i)
        values[i * s.keys + k] = whole[k * s.valueSize + i];
  }
  const GuardedFloats guardedValues(values);
  const AttentionValues theValues = {guardedValues.data(), s.isTransposed ? s.keys : s.valueSize,
                                     s.isTransposed};
  for (int level = 0; level <= static_cast<int>(attentionLevel()); ++level) {
    const auto which = static_cast<AttentionLevel>(level);
    std::vector<float> packed(paddedKeys(s.keys) * s.size, nan);
    if (s.isPacked)
      packKeys(guardedKeys.data(), s.size, s.size, {s.firstPacked, s.range.end}, packed.data(),
               which);
    std::vector<float> packedValues(packedValuesSize(s.keys, s.valueSize), nan);
    if (s.isPacked)
      packValues(theValues, s.valueSize, {s.firstPacked, s.range.end}, s.firstPacked, s.keys,
                 packedValues.data(), which);
    std::vector<float> logits(kAttentionRows * logitsStride(s.keys));
    std::vector<float> outputs(size_t{s.rows} * s.valueSize, nan);
    AttentionBlock block;
    block.rows = s.rows;
    for (size_t r = 0; r < kAttentionRows; ++r) {
      const size_t row = std::min<size_t>(r, s.rows - 1);
      block.queries[r] = queries.data() + row * s.size;
      block.masks[r] = mask.data();
      block.outputs[r] = outputs.data() + row * s.valueSize;
    }
    block.range = s.range;
    block.keys = guardedKeys.data();
    block.values = theValues;
    block.keyStride = s.size;
    block.maskStride = 1;
    block.packedKeys = s.isPacked ? packed.data() : nullptr;
    block.packedValues = s.isPacked ? packedValues.data() : nullptr;
    block.firstPacked = s.firstPacked;
    block.logits = logits.data();
    attend(p, block, which);
    for (size_t i = 0; i < outputs.size(); ++i)
      ASSERT_NEAR(outputs[i], expected[i], 2e-6) << level << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionBlockTest,
    testing::Values(Shape{8, 64, 77, 64, {0, 77}, 0, true}, Shape{1, 1, 1, 1, {0, 1}, 0, true},
                    Shape{1, 80, 45, 80, {0, 45}, 0, false}, Shape{2, 33, 9, 7, {2, 9}, 0, false},
                    Shape{4, 100, 40, 31, {5, 37}, 0, false},
                    Shape{5, 40, 130, 40, {3, 129}, 0, true},
                    Shape{3, 17, 64, 65, {33, 34}, 1, true}, Shape{7, 7, 50, 33, {9, 50}, 9, true},
                    Shape{6, 256, 100, 128, {31, 95}, 4, true},
                    Shape{8, 5, 33, 16, {32, 33}, 17, false},
                    Shape{1, 64, 120, 64, {3, 120}, 0, false, true},
                    Shape{3, 64, 50, 64, {0, 37}, 0, false, true},
                    Shape{5, 12, 19, 33, {18, 19}, 0, false, true},
                    Shape{8, 64, 77, 64, {5, 70}, 5, true, true},
                    Shape{7, 9, 130, 41, {40, 130}, 17, true, true}));

TEST(SeenKeys, AreFromTheFirstToTheLast) {
  const float none = -std::numeric_limits<float>::infinity();
  for (uint32_t keys = 1; keys < 70; keys += 3) {
    std::vector<float> mask(keys, none);
    EXPECT_GE(seenKeys(mask.data(), 1, keys).begin, seenKeys(mask.data(), 1, keys).end);
    for (uint32_t first = 0; first < keys; ++first) {
      std::fill(mask.begin(), mask.end(), none);
      mask[first] = 0.0f;
      mask[keys - 1 - first / 2] = std::numeric_limits<float>::quiet_NaN();
      const KeyRange range = seenKeys(mask.data(), 1, keys);
      EXPECT_EQ(range.begin, std::min(first, keys - 1 - first / 2));
      EXPECT_EQ(range.end, std::max(first, keys - 1 - first / 2) + 1);
    }
  }
  EXPECT_EQ(seenKeys(&none, 0, 5).end, 0u);
  const float hidden = -45824.0f;
  EXPECT_EQ(seenKeys(&hidden, 0, 5).end, 5u);
  const float zero = 0.0f;
  EXPECT_EQ(seenKeys(&zero, 0, 5).end, 5u);
}

TEST(SeenKeys, FiniteNumbersFarBelowTheGreatestHide) {
  constexpr uint32_t kKeys = 70;
  const float lowest = std::numeric_limits<float>::lowest();
  struct Row {
    float open, hidden;
    bool isHidden;
  };
  for (const Row& row :
       {Row{0.0f, -45824.0f, true}, Row{0.0f, -16384.0f, true}, Row{0.0f, -16383.0f, false},
        Row{5.0f, -16379.0f, true}, Row{-45824.0f, -45824.0f, false}, Row{lowest, lowest, false},
        Row{-3e38f, lowest, true}, Row{3e38f, 0.0f, true}}) {
    std::vector<float> mask(kKeys, row.hidden);
    std::fill(mask.begin() + 33, mask.begin() + 40, row.open);
    const KeyRange range = seenKeys(mask.data(), 1, kKeys);
    EXPECT_EQ(range.begin, row.isHidden ? 33u : 0u) << row.open << " " << row.hidden;
    EXPECT_EQ(range.end, row.isHidden ? 40u : kKeys) << row.open << " " << row.hidden;
  }
}

}  // namespace
}  // namespace hearth::cpu
