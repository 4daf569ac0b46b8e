// SPDX-License-Identifier: Apache-2.0
// When a call to a host is given up. A driver looks at the deadline between operations, so it may
// keep to it late; one that is much later hangs, and so does a host that no longer answers its
// pulse. Without a deadline nobody can tell a long computation from one that hangs, as long as the
// pulse is answered, unless the model says how long a step of it takes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "ipc/host_pulse.h"

namespace hearth::ipc {

namespace internal {
// Nanoseconds. Set by tests.
inline std::atomic<int64_t> lateness = 30'000'000'000;   // behind a deadline, whatever happens
inline std::atomic<int64_t> silence = 800'000'000;       // behind a deadline, without a pulse
inline std::atomic<int64_t> standstill = 5'000'000'000;  // behind a deadline, without a new step
inline std::atomic<int64_t> endlessSilence = 30'000'000'000;  // without a deadline
}  // namespace internal

// How long one call waits. Used by one thread.
class Patience {
 public:
  // `pulse`, which must outlive this, is the host's; null where it has none. `longestStep` is how
  // long the host may take for a step of what is called, at most; 0 when that is not known.
  explicit Patience(base::Deadline deadline, HostPulse* pulse = nullptr,
                    std::chrono::nanoseconds longestStep = {});
  // Patience without end, for a host that uses the client's memory and that the client may not end.
  static Patience endless() { return Patience(base::Deadline()); }
  // Ends at `deadline`, whatever the host does.
  static Patience until(base::Deadline deadline);

  // When to ask next whether it has run out, if no answer has come by then.
  base::Deadline next() { return next(HostPulse::Clock::now()); }
  // The same for a caller that has just looked at the clock.
  base::Deadline next(HostPulse::Clock::time_point now);
  // Looks at the host. For when next() has passed.
  bool hasRunOut();

  // Whether the call has a deadline, so that the caller expects to miss it.
  bool hasDeadline() const { return !deadline_.isNever(); }

 private:
  std::chrono::nanoseconds intervalWithoutDeadline() const;
  // Looks at the host, and notes when it has begun its last step.
  HostPulse::Beat look(HostPulse::Clock::time_point now);

  const base::Deadline deadline_;
  bool isStrict_ = false;
  HostPulse* const pulse_;
  const std::chrono::nanoseconds longestStep_;
  std::optional<base::Deadline> next_;  // none before the first question
  bool hasLooked_ = false;
  // As the host said last, and when it said something else before.
  uint64_t steps_ = 0;
  HostPulse::Clock::time_point changed_;
};

// Whether a computation ends so late that its client may give up any moment, and use the memory of
// the results for something else.
bool isTooLate(const base::Deadline& deadline);

}  // namespace hearth::ipc
