// SPDX-License-Identifier: Apache-2.0
#include "tools/score_calibration.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hearth::tools {
namespace {

TEST(ScoreCalibrationTest, AppliesTheSigmoidOfTheClass) {
  const auto calibration =
      ScoreCalibration::parse("1,2,3\r\n 0.5 , -1 , 0 , 0.25\n", "identity", 0.1);
  EXPECT_DOUBLE_EQ(calibration.apply(0, 0.5), 1 / (1 + std::exp(-4.0)));
  EXPECT_DOUBLE_EQ(calibration.apply(1, 0.5), 0.5 / (1 + std::exp(0.5)));
  EXPECT_EQ(calibration.apply(1, 0.25), 0.1);
  EXPECT_EQ(calibration.apply(2, 0.5), 0.1);
}

TEST(ScoreCalibrationTest, TransformsScoresFirst) {
  const auto log = ScoreCalibration::parse("1,1,0", "log", 0);
  EXPECT_DOUBLE_EQ(log.apply(0, 0.25), 1 / (1 + 1 / 0.25));
  const auto inverse = ScoreCalibration::parse("1,1,0", "inverse logistic", 0);
  EXPECT_DOUBLE_EQ(inverse.apply(0, 0.25), 0.25);
}

TEST(ScoreCalibrationTest, LinesThatAreNoNumbersGiveTheDefault) {
  const auto calibration =
      ScoreCalibration::parse("\n1,2\n1,2,3,4,5\na,b,c\n1,2,3x\n,,\n1,2,3", "identity", 7);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(calibration.apply(i, 1), 7) << i;
  EXPECT_NE(calibration.apply(6, 1), 7);
}

}  // namespace
}  // namespace hearth::tools
