// SPDX-License-Identifier: Apache-2.0
// The time of day. Durations are measured with std::chrono::steady_clock instead.
#pragma once

#include <cstdint>
#include <ctime>

namespace hearth::base {

constexpr int64_t toNanoseconds(const timespec& time) {
  // A file may claim any time; times beyond the year 2262 wrap.
  return static_cast<int64_t>(static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
                              static_cast<uint64_t>(time.tv_nsec));
}

// Nanoseconds since 1970. May go backwards.
int64_t wallClock();

// The same from the clock that file systems take their stamps from, which is behind by up to a
// tick.
int64_t fileClock();

}  // namespace hearth::base
