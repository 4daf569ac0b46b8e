// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef HEARTH_TEST_HOOKS

#include <cstdlib>
#include <string>

#include "base/crash_point.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {

// Runs `work` in a forked child that is killed at a crash point, at its n-th passage if the text
// ends in ":n". Returns how the child ended.
template <typename Work>
int endOfCrashing(const std::string& point, Work work) {
  return waitForChild(startChild([&] {
    ::setenv("HEARTH_CRASH_AT", point.c_str(), 1);
    base::internal::crashArmed = -1;
    return work();
  }));
}

}  // namespace hearth::cache

#endif
