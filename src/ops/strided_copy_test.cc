// SPDX-License-Identifier: Apache-2.0
#include "ops/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace hearth::ops {
namespace {

// The definition: copies one element for each combination of indices.
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

template <typename T>
void expectCopied(const std::vector<CopyDimension>& loops, size_t sourceSize, int64_t start,
                  size_t targetSize) {
  std::mt19937 random(9);
  std::vector<T> source(sourceSize);
  for (T& value : source) value = static_cast<T>(random());
  std::vector<T> expected(targetSize), actual(targetSize);
  copyPlainly(loops, 0, source.data() + start, expected.data());
  copyStrided(sizeof(T), loops, source.data() + start, actual.data());
  EXPECT_EQ(actual, expected);
  const auto pool = threads::ThreadPool::create(3).value();
  std::ranges::fill(actual, T{0});
  copyStrided(sizeof(T), loops, source.data() + start, actual.data(), pool.get());
  EXPECT_EQ(actual, expected);
}

// Sizes around those of the tiles, with and without a remainder.
TEST(StridedCopyTest, TransposesBytes) {
  for (const int64_t rows : {64, 67, 128, 1000})
    for (const int64_t columns : {15, 16, 17, 40, 64}) {
      const auto size = static_cast<size_t>(2 * rows * columns);
      expectCopied<uint8_t>(
          {{2, rows * columns, rows * columns}, {columns, 1, rows}, {rows, columns, 1}}, size, 0,
          size);
    }
}

TEST(StridedCopyTest, TransposesWords) {
  for (const int64_t rows : {15, 16, 17, 33, 64, 700})
    for (const int64_t columns : {15, 16, 17, 31, 32, 64}) {
      const auto size = static_cast<size_t>(2 * rows * columns);
      expectCopied<uint32_t>(
          {{2, rows * columns, rows * columns}, {columns, 1, rows}, {rows, columns, 1}}, size, 0,
          size);
      // A part of wider rows.
      expectCopied<uint32_t>({{columns, 1, rows + 3}, {rows, columns + 5, 1}},
                             static_cast<size_t>(rows * (columns + 5)), 0,
                             static_cast<size_t>(columns * (rows + 3)));
    }
}

template <typename T>
void checkReversedRows() {
  for (const int64_t size : {1, 2, 7, 15, 16, 17, 64, 65, 200}) {
    const size_t count = static_cast<size_t>(6 * size);
    expectCopied<T>({{2, 3 * size, 3 * size}, {3, size, size}, {size, -1, 1}}, count, size - 1,
                    count);
  }
}

TEST(StridedCopyTest, ReversesRows) {
  checkReversedRows<uint8_t>();
  checkReversedRows<uint16_t>();
  checkReversedRows<uint32_t>();
  checkReversedRows<uint64_t>();
}

constexpr int64_t kPieces[] = {1,   2,   3,   4,   7,   8,   9,    12,   15,   16,  17,  31,
                               63,  64,  65,  100, 127, 128, 129,  255,  256,  257, 300, 511,
                               512, 513, 767, 768, 769, 900, 1023, 1024, 1025, 5000};

TEST(StridedCopyTest, CopiesPiecesOfAnyLength) {
  for (const int64_t size : kPieces)
    expectCopied<uint8_t>({{5, size + 9, size + 1}, {size, 1, 1}},
                          static_cast<size_t>(5 * (size + 9)), 0,
                          static_cast<size_t>(5 * (size + 1)));
}

TEST(StridedCopyTest, CopiesPiecesAtAnyDistance) {
  for (const int64_t size : kPieces)
    for (const int64_t count : {0, 1, 7}) {
      const int64_t from = size + 9;
      const int64_t to = size + 1;
      std::vector<uint8_t> source(static_cast<size_t>(count * from));
      for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 31);
      std::vector<uint8_t> expected(static_cast<size_t>(count * to), 0), actual = expected;
      copyPlainly<uint8_t>({{count, from, to}, {size, 1, 1}}, 0, source.data(), expected.data());
      copyPieces(static_cast<size_t>(size), static_cast<uint64_t>(count), source.data(),
                 static_cast<uint64_t>(from), actual.data(), static_cast<uint64_t>(to));
      EXPECT_EQ(actual, expected) << size;
    }
}

TEST(StridedCopyTest, RepeatsWithStrideZero) {
  const std::vector<uint16_t> source = {1, 2, 3};
  std::vector<uint16_t> target(12);
  copyStrided(2, {{2, 0, 6}, {3, 1, 2}, {2, 0, 1}}, source.data(), target.data());
  EXPECT_EQ(target, (std::vector<uint16_t>{1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3}));
}

// Each of the four loops is the empty one in turn.
TEST(StridedCopyTest, TouchesNothingForEmptyLoops) {
  for (const size_t elementSize : {1, 2, 4, 8, 16})
    for (const bool isTransposed : {false, true})
      for (size_t empty = 0; empty < 4; ++empty) {
        std::vector<CopyDimension> loops = {{2, 300, 300}, {2, 70, 70}, {3, 15, 15}, {3, 2, 2}};
        if (isTransposed) std::swap(loops[2].sourceStride, loops[3].sourceStride);
        loops[empty].size = 0;
        constexpr size_t kElements = 300 + 70 + 2 * 15 + 2 * 2 + 1;
        const std::vector<uint8_t> source(kElements * elementSize, 1);
        std::vector<uint8_t> target(kElements * elementSize, 2);
        copyStrided(elementSize, loops, source.data(), target.data());
        EXPECT_EQ(std::ranges::count(target, 2), std::ssize(target))
            << elementSize << " bytes, loop " << empty << (isTransposed ? ", transposed" : "");
      }
}

TEST(StridedCopyTest, PutsABlockIntoATensor) {
  const std::vector<uint16_t> block = {1, 2, 3, 4};
  std::vector<uint16_t> tensor(12);
  const int64_t begin[] = {1, 2};
  copyBlock(2, {2, 2}, block.data(), {3, 4}, begin, tensor.data());
  EXPECT_EQ(tensor, (std::vector<uint16_t>{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4}));
  const uint16_t scalar = 9;
  copyBlock(2, {}, &scalar, {}, {}, tensor.data());
  EXPECT_EQ(tensor[0], 9);
  // An empty block writes nothing, even where it begins past the end.
  const int64_t end[] = {3, 4};
  copyBlock(2, {0, 2}, nullptr, {3, 4}, end, tensor.data());
  EXPECT_EQ(tensor, (std::vector<uint16_t>{9, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4}));
}

template <typename T>
void expectFilled(T value) {
  // Counts around the size up to which each pass doubles the part that is filled.
  for (const size_t count : {0, 1, 2, 3, 1000, 20001}) {
    std::vector<T> elements(count + 1, T{0});
    fillElements(sizeof(T), &value, elements.data(), count);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(elements[i], value) << i << " of " << count;
    EXPECT_EQ(elements[count], T{0}) << count;
  }
}

TEST(StridedCopyTest, FillsAnyElementSize) {
  expectFilled<uint8_t>(0x01);
  expectFilled<uint16_t>(0x0102);
  expectFilled<uint32_t>(0x01020304);
  expectFilled<uint64_t>(0x0102030405060708);
}

}  // namespace
}  // namespace hearth::ops
