// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef HEARTH_TEST_HOOKS

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/fault.h"
#include "cache/object/store_failure.h"

namespace hearth::cache {

// Calls `work` while system calls fail as `fault` says (see HEARTH_FAULT), and returns its result.
template <typename Work>
auto underFault(const char* fault, Work work) {
  EXPECT_TRUE(base::sys::injectText(fault)) << fault;
  auto result = work();
  base::sys::clearFaults();
  return result;
}

// Faults by the reason that is told for what they make fail.
using FaultsByReason = std::vector<std::pair<StoreReason, std::vector<const char*>>>;

// Calls test(fault, reason) for each fault.
template <typename Test>
void forEachFault(const FaultsByReason& faults, Test test) {
  for (const auto& [reason, ofReason] : faults)
    for (const char* const fault : ofReason) {
      SCOPED_TRACE(fault);
      test(fault, reason);
      if (testing::Test::HasFatalFailure()) return;
    }
}

}  // namespace hearth::cache

#endif
