// SPDX-License-Identifier: Apache-2.0
// Deadlines on the steady clock, saturating, as NNAPI's time-outs are.
#pragma once

#include <chrono>
#include <cstdint>

namespace hearth::base {

// A point in time after which work should stop; default-constructed = never. Value type.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  Deadline() = default;
  explicit Deadline(Clock::time_point when) : when_(when) {}

  // `nanoseconds` from now. A sum beyond the clock's range means never.
  static Deadline after(uint64_t nanoseconds) {
    const Clock::time_point now = Clock::now();
    const auto room = static_cast<uint64_t>((Clock::time_point::max() - now).count());
    if (nanoseconds >= room) return Deadline();
    return Deadline(now + std::chrono::nanoseconds(static_cast<int64_t>(nanoseconds)));
  }

  bool isNever() const { return when_ == Clock::time_point::max(); }
  bool hasPassed() const { return !isNever() && Clock::now() >= when_; }
  Clock::time_point when() const { return when_; }

 private:
  Clock::time_point when_ = Clock::time_point::max();
};

}  // namespace hearth::base
