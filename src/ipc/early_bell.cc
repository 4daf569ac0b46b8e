// SPDX-License-Identifier: Apache-2.0
#include "ipc/early_bell.h"

#include <algorithm>
#include <cstdint>

namespace hearth::ipc {
namespace {

// So many computations in a row show that another step is the right one. Single ones are slow, or
// interrupted, now and then.
constexpr int kDoubts = 3;
constexpr std::chrono::microseconds kUsualLead(100);

}  // namespace

bool EarlyBell::reach(Clock::time_point now) {
  reached_ = now;
  return isRight_;
}

void EarlyBell::end(std::chrono::nanoseconds inDriver, Clock::time_point now) {
  if (inDriver < kShortest || steps_ == 0) {
    left_ = 0;
    isRight_ = false;
  } else if (left_ == 0 || !wasReached()) {
    // As if all steps took equally long.
    const double part = std::chrono::duration<double>(kUsualLead) / inDriver;
    left_ = std::clamp<size_t>(static_cast<size_t>(static_cast<double>(steps_) * part), 1, steps_);
    isRight_ = false;
    early_ = 0;
  } else {
    learn(now - reached_);
  }
  reached_ = {};
  steps_ = 0;
}

void EarlyBell::learn(Clock::duration lead) {
  if (lead >= kLeastLead && lead <= kMostLead) {
    isRight_ = true;
    early_ = 0;
    return;
  }
  const bool isEarly = lead > kMostLead;
  early_ = isEarly ? std::max(early_, 0) + 1 : std::min(early_, 0) - 1;
  if (early_ != kDoubts && early_ != -kDoubts) return;
  early_ = 0;
  isRight_ = false;
  if (isEarly)
    left_ = std::max<size_t>(left_ - 1, 1);
  else
    left_ = std::min(left_ + 1, steps_);
}

}  // namespace hearth::ipc
