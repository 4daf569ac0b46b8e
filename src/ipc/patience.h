// SPDX-License-Identifier: Apache-2.0
// How long after its deadline a call to a host is given up. A driver looks at the deadline between
// operations, so it may keep to it late; one that is much later hangs. A call without a deadline is
// never given up: nobody can tell a long computation from one that hangs.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace hearth::ipc {

namespace internal {
// Nanoseconds. Set by tests.
inline std::atomic<int64_t> lateness = 30'000'000'000;
}  // namespace internal

// When the client of a call with this deadline gives up.
inline base::Deadline givesUp(const base::Deadline& deadline) {
  const std::chrono::nanoseconds more(internal::lateness.load(std::memory_order_relaxed));
  if (deadline.when() > base::Deadline::Clock::time_point::max() - more) return {};
  return base::Deadline(deadline.when() + more);
}

// Whether a computation ends so late that its client may give up any moment, and use the memory of
// the results for something else.
inline bool isTooLate(const base::Deadline& deadline) {
  if (deadline.isNever()) return false;
  const std::chrono::nanoseconds more(internal::lateness.load(std::memory_order_relaxed) / 2);
  return base::Deadline::Clock::now() - more >= deadline.when();
}

}  // namespace hearth::ipc
