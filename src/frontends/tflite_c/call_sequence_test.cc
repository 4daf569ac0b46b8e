// SPDX-License-Identifier: Apache-2.0
// Runs the function of the fuzz target with random bytes and with its first inputs.
#include "frontends/tflite_c/testing/call_sequence.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/log.h"
#include "frontends/tflite/testing/sample_models.h"

namespace hearth::tflite_c::testing {
namespace {

void beQuiet() {
  ::setenv("HEARTH_STORE_MODE", "off", 1);
  base::setLogLevel(base::LogLevel::kOff);
}

TEST(TfliteCallSequence, RandomCallsBreakNothing) {
  beQuiet();
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

// Those named plain_ make an interpreter and run it twice; of others some are refused.
TEST(TfliteCallSequence, TheFirstInputsOfTheFuzzerRunModels) {
  beQuiet();
  size_t plain = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HEARTH_CORPUS)) {
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::vector<uint8_t> bytes(std::istreambuf_iterator<char>(stream), {});
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    const size_t succeeded = runCallSequence(bytes);
    if (!name.starts_with("plain_")) continue;
    EXPECT_GE(succeeded, 15u);
    ++plain;
  }
  EXPECT_GT(plain, 30u);
}

}  // namespace
}  // namespace hearth::tflite_c::testing
