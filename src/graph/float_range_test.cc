// SPDX-License-Identifier: Apache-2.0
#include "graph/float_range.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace hearth::graph {
namespace {

using Limits = std::numeric_limits<float>;

TEST(FloatRange, FindsEachWrongNumberAtEachPlace) {
  for (size_t count = 0; count < 20; ++count) {
    std::vector<float> values(count, 1.0f);
    EXPECT_TRUE(areWithin(values, Limits::denorm_min(), Limits::max()));
    for (size_t i = 0; i < count; ++i) {
      for (const float wrong : {0.0f, -0.0f, -1.0f, -Limits::denorm_min(), Limits::infinity(),
                                -Limits::infinity(), Limits::quiet_NaN(), -Limits::quiet_NaN()}) {
        values[i] = wrong;
        EXPECT_FALSE(areWithin(values, Limits::denorm_min(), Limits::max())) << wrong << " " << i;
      }
      values[i] = 1.0f;
    }
  }
}

TEST(FloatRange, BoundsBelongToTheRange) {
  EXPECT_TRUE(areWithin(std::vector{Limits::denorm_min(), Limits::max()}, Limits::denorm_min(),
                        Limits::max()));
  EXPECT_FALSE(areWithin(std::vector{Limits::denorm_min()}, Limits::min(), Limits::max()));
  EXPECT_TRUE(areWithin(std::vector{0.0f, 2.0f}, 0.0f, 2.0f));
  EXPECT_FALSE(areWithin(std::vector{-0.0f}, 0.0f, 2.0f));
}

}  // namespace
}  // namespace hearth::graph
