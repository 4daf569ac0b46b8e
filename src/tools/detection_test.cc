// SPDX-License-Identifier: Apache-2.0
#include "tools/detection.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth::tools {
namespace {

// The vector has no room to spare, so that the address sanitizer sees a look behind its end.
TEST(DetectionTest, ThereAreNoneWithoutBoxes) {
  const std::vector<Array> outputs = {{HEARTH_TYPE_FLOAT32, {1, 3}, TensorBytes(12)},
                                      {HEARTH_TYPE_FLOAT32, {1}, TensorBytes(4)}};
  const std::vector<TensorInfo> infos(outputs.size());
  EXPECT_FALSE(detectionsOf(outputs, infos, ModelFacts(), 64, 48));
  EXPECT_FALSE(detectionsOf({}, {}, ModelFacts(), 64, 48));
}

}  // namespace
}  // namespace hearth::tools
