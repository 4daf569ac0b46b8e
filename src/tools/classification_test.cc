// SPDX-License-Identifier: Apache-2.0
#include "tools/classification.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace hearth::tools {
namespace {

Array floats(const std::vector<float>& values, std::vector<uint64_t> shape) {
  Array array{HEARTH_TYPE_FLOAT32, std::move(shape), {}};
  array.bytes.resize(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

std::vector<uint64_t> indices(const std::vector<ScoredClass>& classes) {
  std::vector<uint64_t> list;
  for (const ScoredClass& one : classes) list.push_back(one.index);
  return list;
}

TEST(ClassificationTest, OrdersByScoreThenIndex) {
  const Array output = floats({1, 5, NAN, 5, -2}, {1, 5});
  EXPECT_EQ(indices(topClasses(output, {}, 3)), (std::vector<uint64_t>{1, 3, 0}));
  EXPECT_EQ(indices(topClasses(output, {}, 99)), (std::vector<uint64_t>{1, 3, 0, 4, 2}));
  EXPECT_TRUE(topClasses(output, {}, 0).empty());
}

TEST(ClassificationTest, ScoresAreRealNumbers) {
  TensorInfo info;
  info.scale = 0.5f;
  info.zeroPoint = -128;
  const Array output{HEARTH_TYPE_INT8, {1, 2}, {0x80, 0x7F}};
  const auto top = topClasses(output, info, 1);
  EXPECT_EQ(top[0].index, 1u);
  EXPECT_DOUBLE_EQ(top[0].score, 127.5);
}

TEST(ClassificationTest, KnowsScoresByTheirShape) {
  const auto is = [](std::vector<uint64_t> shape, bool isLenient) {
    return isClassification({HEARTH_TYPE_UINT8, std::move(shape), {}}, isLenient);
  };
  for (const bool isLenient : {false, true}) {
    EXPECT_TRUE(is({10}, isLenient));
    EXPECT_TRUE(is({1, 10}, isLenient));
    EXPECT_TRUE(is({1, 1, 1, 10}, isLenient));
    EXPECT_FALSE(is({}, isLenient));
    EXPECT_FALSE(is({1, 1}, isLenient));
    EXPECT_FALSE(is({2, 10}, isLenient));
    EXPECT_FALSE(is({1, 0, 10}, isLenient));
    EXPECT_FALSE(is({1, 10, 10, 10}, isLenient));
  }
  EXPECT_FALSE(is({1, 1, 257}, false));
  EXPECT_TRUE(is({1, 1, 257}, true));
  EXPECT_TRUE(is({1, 10, 1, 1}, true));
}

TEST(LabelsTest, AreShiftedOnlyPastAMissingBackground) {
  const Labels labels = Labels::parse("background\ncat\r\ndog");
  EXPECT_EQ(labels.name(1, 3), "cat");
  EXPECT_EQ(labels.name(1, 2), "dog");
  EXPECT_EQ(labels.name(9, 3), "");
  EXPECT_EQ(Labels::parse("ant\ncat\ndog").name(1, 2), "cat");
  EXPECT_EQ(Labels().name(0, 2), "");
}

}  // namespace
}  // namespace hearth::tools
