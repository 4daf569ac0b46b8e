// SPDX-License-Identifier: Apache-2.0
// What the library of test_driver.cc reports to the tests that load it.
#pragma once

#include <sys/types.h>

#include <atomic>

namespace hearth::hal {

struct TestDriverCounts {
  std::atomic<int> warmUps = 0;
  std::atomic<pid_t> warmingThread = 0;  // of the last warm-up
};

// The symbol of the library's TestDriverCounts.
inline constexpr char kTestDriverCounts[] = "hearth_test_driver_counts";

}  // namespace hearth::hal
