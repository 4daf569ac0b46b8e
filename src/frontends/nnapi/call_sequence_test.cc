// SPDX-License-Identifier: Apache-2.0
// Runs the function of the fuzz target with random bytes.
#include "frontends/nnapi/testing/call_sequence.h"

#include <random>

#include "frontends/nnapi/testing/test_models.h"

namespace hearth::nnapi {
namespace {

using CallSequence = QuietTest;

TEST_F(CallSequence, RandomCallsBreakNothing) {
  size_t succeeded = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> bytes(2000);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    succeeded += runCallSequence(bytes);
  }
  // Enough calls succeed for the test to mean something.
  EXPECT_GT(succeeded, 10'000u);
}

}  // namespace
}  // namespace hearth::nnapi
