// SPDX-License-Identifier: Apache-2.0
// Runs the function of the fuzz target with random bytes.
#include "frontends/tflite_c/testing/call_sequence.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/log.h"
#include "frontends/tflite/testing/sample_models.h"

namespace hearth::tflite_c::testing {
namespace {

TEST(TfliteCallSequence, RandomCallsBreakNothing) {
  ::setenv("HEARTH_STORE_MODE", "off", 1);
  base::setLogLevel(base::LogLevel::kOff);
  const std::vector<tflite::SampleModel> samples = tflite::sampleModels();
  std::vector<std::span<const uint8_t>> models;
  for (const tflite::SampleModel& sample : samples) models.emplace_back(sample.bytes);
  size_t succeeded = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> bytes(1200);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    succeeded += runCallSequence(bytes, models);
  }
  // Enough calls succeed for the test to mean something.
  EXPECT_GT(succeeded, 1'000u);
}

}  // namespace
}  // namespace hearth::tflite_c::testing
