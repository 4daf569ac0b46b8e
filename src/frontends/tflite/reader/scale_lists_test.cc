// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/scale_lists.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

namespace hearth::tflite {
namespace {

std::vector<float> someScales(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(ScaleListsTest, EqualLongListsAreOne) {
  ScaleLists lists;
  const std::vector<float> values = someScales(5000);
  const std::vector<float> copy = values;
  const graph::ChannelScales one = lists.share(values);
  EXPECT_EQ(one, graph::ChannelScales(values));
  EXPECT_EQ(lists.share(copy).data(), one.data());
}

TEST(ScaleListsTest, ListsThatDifferAnywhereAreOfTheirOwn) {
  ScaleLists lists;
  const std::vector<float> values = someScales(2000);
  const graph::ChannelScales one = lists.share(values);
  for (size_t i = 0; i < values.size(); i += 37) {
    std::vector<float> other = values;
    other[i] = 0.5f;
    EXPECT_EQ(lists.share(other), graph::ChannelScales(other)) << i;
  }
  EXPECT_EQ(one, graph::ChannelScales(values));
  EXPECT_EQ(lists.share(values).data(), one.data());
}

TEST(ScaleListsTest, ComparesBytesAndNotNumbers) {
  ScaleLists lists;
  std::vector<float> values = someScales(2000);
  values[1001] = 0.0f;
  const graph::ChannelScales zero = lists.share(values);
  values[1001] = -0.0f;
  EXPECT_TRUE(zero.areWithin(0.0f, 2000.0f));
  EXPECT_FALSE(lists.share(values).areWithin(0.0f, 2000.0f));
  values[1001] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(lists.share(values).areWithin(0.0f, 2000.0f));
}

TEST(ScaleListsTest, KeepsNoMoreThanItsBound) {
  ScaleLists lists;
  std::vector<float> values(size_t{4} << 20, 1.0f);  // 16 MiB
  std::vector<graph::ChannelScales> held;
  for (int i = 0; i < 6; ++i) {
    values[0] = static_cast<float>(i);
    held.push_back(lists.share(values));
  }
  values[0] = 0.0f;
  EXPECT_EQ(lists.share(values).data(), held[0].data());
  values[0] = 5.0f;
  EXPECT_NE(lists.share(values).data(), held[5].data());
  EXPECT_EQ(lists.share(values), held[5]);
}

}  // namespace
}  // namespace hearth::tflite
