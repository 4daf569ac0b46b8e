// SPDX-License-Identifier: Apache-2.0
// When a host tells a client that its answer is near.
#pragma once

#include <chrono>
#include <cstddef>

namespace hearth::ipc {

// Finds the step of a computation that begins about as long before its end as a sleeping thread
// takes to wake: a client that is woken then is awake when the answer comes. The step is learned
// from the computations before. Nothing is found where computations are too short for it, where
// steps are so long that none begins at the right time, and where the driver tells of no steps.
class EarlyBell {
 public:
  using Clock = std::chrono::steady_clock;

  // How long before the end the step begins; and of how short a computation, since a client spins
  // for no more than a tenth of it.
  static constexpr std::chrono::microseconds kLeastLead{50};
  static constexpr std::chrono::microseconds kMostLead{160};
  static constexpr std::chrono::microseconds kShortest{800};

  // Step `step` of `steps` begins: whether it is the one that reach() is to be called for.
  bool isAt(size_t step, size_t steps) {
    steps_ = steps;
    return steps - step == left_;
  }

  // Whether there is such a step.
  bool isRight() const { return isRight_; }

  // That step begins `now`. Returns whether it is to be told: whether it was at the right time in
  // an earlier computation.
  bool reach(Clock::time_point now);

  // Whether reach() was called in this computation.
  bool wasReached() const { return reached_ != Clock::time_point(); }

  // A computation that took so long in the driver ends; when it ends matters where reach() was
  // called.
  void end(std::chrono::nanoseconds inDriver, Clock::time_point now);

 private:
  void learn(Clock::duration lead);

  size_t steps_ = 0;  // of the last computation; 0: not told
  size_t left_ = 0;   // the step's number, counted from the end; 0: there is none
  bool isRight_ = false;
  int early_ = 0;  // computations in a row that it was too early in; negative: too late
  Clock::time_point reached_{};
};

}  // namespace hearth::ipc
