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

Patience::Patience(base::Deadline deadline, HostPulse* pulse, nanoseconds longestStep)
    : deadline_(deadline), pulse_(pulse), longestStep_(longestStep) {}

base::Deadline Patience::next(Clock::time_point now) {
  if (!next_ && (hasDeadline() || pulse_ == nullptr)) next_ = deadline_;
  if (!next_) next_ = base::Deadline(now + intervalWithoutDeadline());
  return *next_;
}

Patience Patience::until(base::Deadline deadline) {
  Patience patience(deadline);
  patience.isStrict_ = true;
  return patience;
}

nanoseconds Patience::intervalWithoutDeadline() const {
  const nanoseconds silence = valueOf(internal::endlessSilence);
  return intervalOf(longestStep_ > nanoseconds(0) ? std::min(silence, longestStep_) : silence);
}

HostPulse::Beat Patience::look(Clock::time_point now) {
  const HostPulse::Beat beat = pulse_->look();
  if (!hasLooked_ || beat.steps != steps_) changed_ = now;
  hasLooked_ = true;
  steps_ = beat.steps;
  return beat;
}

bool Patience::hasRunOut() {
  if (!hasDeadline() && pulse_ == nullptr) return false;
  const Clock::time_point now = Clock::now();
  const nanoseconds longestStandstill = std::max(valueOf(internal::standstill), longestStep_);
  if (!hasDeadline()) {
    next_ = base::Deadline(now + intervalWithoutDeadline());
    const HostPulse::Beat beat = look(now);
    return beat.silence >= valueOf(internal::endlessSilence) ||
           (longestStep_ > nanoseconds(0) && now - changed_ >= longestStandstill);
  }
  const auto late = now - deadline_.when();
  const nanoseconds most =
      isStrict_ ? nanoseconds(0) : std::max(valueOf(internal::lateness), longestStep_);
  if (late < Clock::duration::zero()) return false;
  if (late >= most) return true;
  if (pulse_ == nullptr) {
    next_ = base::Deadline(now + (most - late));
    return false;
  }
  const HostPulse::Beat beat = look(now);
  const nanoseconds longestSilence = valueOf(internal::silence);
  next_ = base::Deadline(now + intervalOf(std::min(longestSilence, most)));
  return beat.silence >= longestSilence || now - changed_ >= longestStandstill;
}

bool isTooLate(const base::Deadline& deadline) {
  if (deadline.isNever()) return false;
  const nanoseconds earliest = std::min(
      {valueOf(internal::lateness), valueOf(internal::silence), valueOf(internal::standstill)});
  return Clock::now() - earliest / 2 >= deadline.when();
}

}  // namespace hearth::ipc
