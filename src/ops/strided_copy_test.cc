// SPDX-License-Identifier: Apache-2.0
#include "ops/strided_copy.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hearth::ops {
namespace {

// The definition: every index combination, one element each.
template <typename T>
void copyPlainly(const std::vector<CopyDimension>& loops, size_t depth, const T* source,
                 T* target) {
  if (depth == loops.size()) {
    *target = *source;
    return;
  }
  for (int64_t i = 0; i < loops[depth].size; ++i)
    copyPlainly(loops, depth + 1, source + i * loops[depth].sourceStride,
                target + i * loops[depth].targetStride);
}

template <typename T>
void checkRandomTranspositions() {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    graph::Dimensions sizes(1 + random() % 5);
    for (uint32_t& size : sizes) size = 1 + random() % (round % 10 == 0 ? 70 : 6);
    std::vector<size_t> order(sizes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    graph::Dimensions target;
    for (const size_t i : order) target.push_back(sizes[i]);
    const std::vector<int64_t> from = rowMajorStrides(sizes);
    const std::vector<int64_t> to = rowMajorStrides(target);
    uint64_t count = 1;
    for (const uint32_t size : sizes) count *= size;
    if (count > 200000) continue;
    std::vector<CopyDimension> loops;
    int64_t start = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const bool isReversed = random() % 4 == 0;
      const int64_t stride = from[order[i]];
      if (isReversed) start += stride * (target[i] - 1);
      loops.push_back({target[i], isReversed ? -stride : stride, to[i]});
    }
    std::vector<T> source(count);
    for (T& value : source) value = static_cast<T>(random());
    std::vector<T> expected(count), actual(count);
    copyPlainly(loops, 0, source.data() + start, expected.data());
    copyStrided(sizeof(T), loops, source.data() + start, actual.data());
    ASSERT_EQ(actual, expected) << graph::describeDimensions(sizes);
  }
}

TEST(StridedCopyTest, AgreesWithOneElementAtATime) {
  checkRandomTranspositions<uint8_t>();
  checkRandomTranspositions<uint16_t>();
  checkRandomTranspositions<uint32_t>();
  checkRandomTranspositions<uint64_t>();
}

TEST(StridedCopyTest, RepeatsWithStrideZero) {
  const std::vector<uint16_t> source = {1, 2, 3};
  std::vector<uint16_t> target(12);
  copyStrided(2, {{2, 0, 6}, {3, 1, 2}, {2, 0, 1}}, source.data(), target.data());
  EXPECT_EQ(target, (std::vector<uint16_t>{1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3}));
}

TEST(StridedCopyTest, TouchesNothingForEmptyLoops) {
  copyStrided(4, {{3, 1, 1}, {0, 1, 1}}, nullptr, nullptr);
}

TEST(StridedCopyTest, FillsAnyElementSize) {
  std::vector<uint32_t> words(10001, 0);
  const uint32_t value = 0x01020304;
  fillElements(4, &value, words.data(), 10000);
  for (size_t i = 0; i < 10000; ++i) ASSERT_EQ(words[i], value);
  EXPECT_EQ(words[10000], 0u);
}

}  // namespace
}  // namespace hearth::ops
