// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cache/testing/store_test_util.h"

namespace hearth::cache {

// Kills processes after they have lived for random times.
class RandomKiller {
 public:
  // Numbers are the same for each `seed`.
  explicit RandomKiller(uint32_t seed) : state_(seed) {}

  // How often a test does this, and how often with HEARTH_TEST_LONG=1.
  static int rounds(int usual, int inLongTests) {
    const char* text = std::getenv("HEARTH_TEST_LONG");
    return text != nullptr && std::string_view(text) == "1" ? inLongTests : usual;
  }

  // Kills a child that has just been forked, and waits for it.
  void kill(pid_t victim) {
    state_ = state_ * 1664525 + 1013904223;
    ::usleep(static_cast<useconds_t>(window_ * (state_ >> 16) / 65536));
    ::kill(victim, SIGKILL);
    const bool wasInTime = wasKilled(waitForChild(victim));
    killed_ += wasInTime ? 1 : 0;
    window_ *= wasInTime ? 1.05 : 0.85;
  }

  // How many had not ended by themselves.
  int killed() const { return killed_; }

 private:
  uint32_t state_;
  // How long a victim may live at most, in microseconds. It follows how long its work takes, which
  // depends on the machine's load.
  double window_ = 20'000;
  int killed_ = 0;
};

}  // namespace hearth::cache
