// SPDX-License-Identifier: Apache-2.0
// Runs the function of the fuzz target with random bytes.
#include "frontends/delegate/testing/graph_of_bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/log.h"

namespace hearth::delegate {
namespace {

TEST(GraphOfBytes, RandomGraphsBreakNothing) {
  base::setLogLevel(base::LogLevel::kOff);
  size_t computed = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> bytes(600);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    computed += runGraphOfBytes(bytes);
  }
  // Enough nodes are computed for the test to mean something.
  EXPECT_GT(computed, 100u);
}

}  // namespace
}  // namespace hearth::delegate
