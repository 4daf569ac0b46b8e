// SPDX-License-Identifier: Apache-2.0
#include "ipc/patience.h"

#include <algorithm>
#include <chrono>

namespace hearth::ipc {
namespace {

using Clock = HostPulse::Clock;
using std::chrono::nanoseconds;

// Between two looks at a host.
constexpr std::chrono::milliseconds kLongestInterval{1000};

nanoseconds valueOf(const std::atomic<int64_t>& limit) {
  return nanoseconds(limit.load(std::memory_order_relaxed));
}

// A tenth of a limit is precise enough.
nanoseconds intervalOf(nanoseconds limit) {
  return std::min<nanoseconds>(limit / 10, kLongestInterval);
}

}  // namespace

Patience::Patience(base::Deadline deadline, HostPulse* pulse) : deadline_(deadline), pulse_(pulse) {
  if (hasDeadline())
    next_ = deadline;
  else if (pulse != nullptr)
    next_ = base::Deadline(Clock::now() + intervalOf(valueOf(internal::endlessSilence)));
}

Patience Patience::until(base::Deadline deadline) {
  Patience patience(deadline);
  patience.isStrict_ = true;
  return patience;
}

bool Patience::hasRunOut() {
  if (!hasDeadline() && pulse_ == nullptr) return false;
  const Clock::time_point now = Clock::now();
  if (!hasDeadline()) {
    const nanoseconds most = valueOf(internal::endlessSilence);
    next_ = base::Deadline(now + intervalOf(most));
    return pulse_->look().silence >= most;
  }
  const auto late = now - deadline_.when();
  const nanoseconds most = isStrict_ ? nanoseconds(0) : valueOf(internal::lateness);
  if (late < Clock::duration::zero()) return false;
  if (late >= most) return true;
  if (pulse_ == nullptr) {
    next_ = base::Deadline(now + (most - late));
    return false;
  }
  const HostPulse::Beat beat = pulse_->look();
  if (!hasLooked_ || beat.steps != steps_) changed_ = now;
  hasLooked_ = true;
  steps_ = beat.steps;
  const nanoseconds longestSilence = valueOf(internal::silence);
  next_ = base::Deadline(now + intervalOf(std::min(longestSilence, most)));
  return beat.silence >= longestSilence || now - changed_ >= valueOf(internal::standstill);
}

bool isTooLate(const base::Deadline& deadline) {
  if (deadline.isNever()) return false;
  const nanoseconds earliest = std::min(
      {valueOf(internal::lateness), valueOf(internal::silence), valueOf(internal::standstill)});
  return Clock::now() - earliest / 2 >= deadline.when();
}

}  // namespace hearth::ipc
