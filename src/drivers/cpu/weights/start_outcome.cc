// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/start_outcome.h"

#include <mutex>
#include <utility>

#include "base/caught.h"
#include "base/format.h"
#include "hal/start_reason.h"

namespace hearth::cpu {

using State = hal::StartReport::State;

void StartOutcome::setWarm() {
  const std::lock_guard lock(mutex_);
  state_ = State::kWarm;
  reason_.clear();
}

void StartOutcome::setCold(std::string reason) {
  const std::lock_guard lock(mutex_);
  state_ = State::kCold;
  reason_ = std::move(reason);
}

void StartOutcome::setUncached(std::string reason) {
  const std::lock_guard lock(mutex_);
  state_ = State::kUncached;
  reason_ = std::move(reason);
}

void StartOutcome::setUncached(cache::StoreReason why, const std::string& message) noexcept {
  const char* const word = cache::storeReasonName(why);
  if (base::caught([&] { setUncached(base::formatText("{}: {}", word, message)); })) return;
  const std::lock_guard lock(mutex_);
  state_ = State::kUncached;
  reason_ = word;  // short enough to need no memory of its own
}

void StartOutcome::setColdButUncached(const cache::StoreFailure& why) {
  const std::lock_guard lock(mutex_);
  reason_ =
      base::formatText("{}; {}: {}", reason_, cache::storeReasonName(why.reason), why.message);
  state_ = State::kUncached;
}

void StartOutcome::setMapped(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  mappedBytes_ = bytes;
}

void StartOutcome::setRepacked(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  repackedBytes_ = bytes;
}

void StartOutcome::setHashed(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  hashedBytes_ = bytes;
}

void StartOutcome::addRepaired(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  repairedBytes_ += bytes;
  reason_ = hal::start_reason::kSegmentCorrupt;
}

bool StartOutcome::isWarm() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kWarm;
}

std::string StartOutcome::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void StartOutcome::describe(hal::StartReport* report) const {
  const std::lock_guard lock(mutex_);
  report->state = state_;
  report->reason = reason_;
  report->repackedBytes = repackedBytes_;
  report->repairedBytes = repairedBytes_;
  report->mappedBytes = mappedBytes_;
  report->hashedBytes = hashedBytes_;
}

}  // namespace hearth::cpu
