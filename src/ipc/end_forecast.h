// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "ipc/expected_time.h"
#include "ipc/idle_processor.h"

namespace hearth::ipc {

// When a thread that waits for answers is to be awake. Waking a thread takes tens of microseconds,
// which are added to every computation that a thread sleeps through. Where the last waits took
// about the same time, it sleeps with a timer until shortly before the end and spins for the rest;
// a wait that is hardly longer than waking takes is spun as a whole.
//
// What that may cost is bounded: 150 us a wait, a tenth of its time or 50 us behind the expected
// end, and fewer and fewer waits where answers do not come then. It is done only where a processor
// is idle, and not for a while after somebody else wanted this one: a thread that spins there is
// taken for one that computes, and waits for its turn when it has to run. For one thread at a time.
class EndForecast {
 public:
  using Clock = std::chrono::steady_clock;

  // Waits that are shorter need no plan: whoever spins for as long as waking takes, as all do,
  // meets their end.
  static constexpr std::chrono::microseconds kShortest{30};
  // How long a wait is spun at most.
  static constexpr std::chrono::microseconds kMostSpun{150};
  // How long nothing is planned after the thread was off its processor while it spun.
  static constexpr std::chrono::milliseconds kRest{100};
  // How long it is believed that a processor is idle, or that none is.
  static constexpr std::chrono::milliseconds kLook{10};
  // A thread that is off its processor for so long was interrupted.
  static constexpr std::chrono::microseconds kInterrupted{50};

  struct Plan {
    Clock::time_point wake;   // when the timer is to fire; the wait's begin where there is none
    Clock::time_point until;  // when the spinning ends in vain
  };

  // `isIdle` says whether a processor is idle, and is asked once in kLook at most.
  explicit EndForecast(std::function<bool()> isIdle = hasIdleProcessor)
      : isIdle_(std::move(isIdle)) {}

  // For a wait that begins `now`; nothing where it is better to wait as if nothing were known.
  std::optional<Plan> planFor(Clock::time_point now);

  // A wait is over, whose answer was given at `end`. Nothing: that is not known, or no processor is
  // left for a thread that spins; then the next wait has no plan.
  void add(Clock::time_point begin, std::optional<Clock::time_point> end);

  // The timer of a plan has fired so late.
  void woke(Clock::duration late);
  // The answer came, or did not come, while the thread spun as planned.
  void spun(bool hasCome);
  // The thread was off its processor while it spun.
  void interrupted(Clock::time_point now);

  // Whether a thread may take a processor to spin on `now`, for longer than waking takes.
  bool mayTakeProcessor(Clock::time_point now);

 private:
  const std::function<bool()> isIdle_;
  bool wasIdle_ = false;
  Clock::time_point lookAgain_{};
  ExpectedTime times_;
  bool isTold_ = false;
  Clock::duration late_ = std::chrono::microseconds(100);  // how late timers fire
  int doubt_ = 1;    // how many plans are left out after the next one that fails
  int leftOut_ = 0;  // how many are still to be left out
  Clock::time_point restsUntil_{};
};

}  // namespace hearth::ipc
