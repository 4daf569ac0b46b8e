// SPDX-License-Identifier: Apache-2.0
#include "ops/dynamic_quantization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hearth::ops {
namespace {

using testing::ElementsAre;

TEST(DynamicQuantizationTest, EachRowIsRoundedToItsOwnSteps) {
  const std::vector<float> values = {0, 0.4f, 0.6f, 255, -1, 0, 0.5f, 1.55f};
  const std::vector<float> rounded = roundToDynamicSteps(values.data(), 2, 4);
  ASSERT_EQ(rounded.size(), 8u);
  EXPECT_THAT(std::vector(rounded.begin(), rounded.begin() + 4), ElementsAre(0, 0, 1, 255));
  // Steps of 0.01 from -1 to 1.55.
  for (size_t i = 4; i < 8; ++i) EXPECT_NEAR(rounded[i], values[i], 1e-6f);
  const float between = 0.504f;
  EXPECT_NEAR(roundToDynamicSteps(std::vector{-1.0f, 1.55f, between}.data(), 1, 3)[2], 0.5f, 1e-6f);
}

TEST(DynamicQuantizationTest, RowsThatAreNotFiniteStayAsTheyAre) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float odd : {std::nanf(""), kInfinity, -kInfinity})
    for (size_t place = 0; place < 3; ++place) {
      std::vector<float> row = {0.1f, 0.4f, 0.2f};
      row[place] = odd;
      const std::vector<float> rounded = roundToDynamicSteps(row.data(), 1, 3);
      for (size_t i = 0; i < 3; ++i)
        if (i != place) {
          EXPECT_EQ(rounded[i], row[i]) << odd << " at " << place;
        }
    }
}

}  // namespace
}  // namespace hearth::ops
