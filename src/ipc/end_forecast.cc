// SPDX-License-Identifier: Apache-2.0
#include "ipc/end_forecast.h"

#include <algorithm>

namespace hearth::ipc {
namespace {

using std::chrono::microseconds;

constexpr microseconds kLeastBehind(50);
constexpr int kBehindPart = 10;
constexpr microseconds kLeastLate(10);
constexpr microseconds kMostLate(120);
// A timer for less is not worth its system call.
constexpr microseconds kShortestNap(30);
constexpr int kMostDoubt = 64;

}  // namespace

std::optional<EndForecast::Plan> EndForecast::planFor(Clock::time_point now) {
  if (!isTold_) return {};
  const auto expected = times_.next();
  if (!expected || *expected < kShortest || !mayTakeProcessor(now)) return {};
  if (leftOut_ > 0) {
    --leftOut_;
    return {};
  }
  const Clock::time_point end = now + *expected;
  const Clock::duration behind =
      std::clamp<Clock::duration>(*expected / kBehindPart, kLeastBehind, kMostSpun);
  const Clock::duration nap = *expected - late_;
  if (nap >= kShortestNap) return Plan{now + nap, end + behind};
  return Plan{now, std::min(end + behind, now + kMostSpun)};
}

bool EndForecast::mayTakeProcessor(Clock::time_point now) {
  if (now < restsUntil_) return false;
  if (now >= lookAgain_) {
    wasIdle_ = isIdle_();
    lookAgain_ = now + kLook;
  }
  return wasIdle_;
}

void EndForecast::add(Clock::time_point begin, std::optional<Clock::time_point> end) {
  isTold_ = end.has_value();
  if (end) times_.add(*end - begin);
}

void EndForecast::woke(Clock::duration late) {
  // Early enough for most of the next timers.
  late_ += late > late_ ? (late - late_) / 2 : (late - late_) / 8;
  late_ = std::clamp<Clock::duration>(late_, kLeastLate, kMostLate);
}

void EndForecast::spun(bool hasCome) {
  if (hasCome) {
    doubt_ = 1;
    return;
  }
  leftOut_ = doubt_;
  doubt_ = std::min(2 * doubt_, kMostDoubt);
}

void EndForecast::interrupted(Clock::time_point now) {
  restsUntil_ = now + kRest;
}

}  // namespace hearth::ipc
