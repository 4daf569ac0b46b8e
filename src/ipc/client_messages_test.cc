// SPDX-License-Identifier: Apache-2.0
// A short fuzzing of the host's side in every test run: the corpus, cut off, and with changed
// bytes.
#include "ipc/testing/client_messages.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "base/log.h"

namespace hearth::ipc {
namespace {

std::vector<std::vector<uint8_t>> corpus() {
  std::vector<std::vector<uint8_t>> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(HEARTH_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

TEST(ClientMessagesTest, WhateverIsSentIsAnsweredOrRefused) {
  base::setLogLevel(base::LogLevel::kOff);
  const auto inputs = corpus();
  ASSERT_GE(inputs.size(), 5u);
  std::mt19937 random(1);
  for (std::vector<uint8_t> input : inputs) {
    ASSERT_FALSE(input.empty());
    playClient(input);
    for (int round = 0; round < 300; ++round) {
      std::vector<uint8_t> changed = input;
      for (uint32_t changes = 1 + random() % 4; changes > 0; --changes)
        changed[random() % changed.size()] = static_cast<uint8_t>(random());
      if (round % 3 == 0) changed.resize(random() % changed.size());
      playClient(changed);
    }
  }
  base::setLogLevelFromEnvironment();
}

}  // namespace
}  // namespace hearth::ipc
