// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "cache/object/store_failure.h"
#include "hal/device.h"

namespace hearth::cpu {

// What a start found in the store and what became of it: the part of the start report that depends
// on the store. A start that nothing was said of is uncached. Thread-safe.
class StartOutcome {
 public:
  // All weights are mapped.
  void setWarm();
  // Weights are packed and written for the next start.
  void setCold(std::string reason);
  // Weights are packed for this process only.
  void setUncached(std::string reason);
  // The same because the store failed: the reason begins with the failure's word. Where there is no
  // memory for the sentence, it is the word alone.
  void setUncached(cache::StoreReason why, const std::string& message) noexcept;
  void setUncached(const cache::StoreFailure& why) noexcept {
    setUncached(why.reason, why.message);
  }
  // The same for a start that is cold because of a reason which remains in the report.
  void setColdButUncached(const cache::StoreFailure& why);

  void setMapped(uint64_t bytes);
  void setRepacked(uint64_t bytes);
  void setHashed(uint64_t bytes);
  // Bytes that were found wrong while the model was in use, and packed again.
  void addRepaired(uint64_t bytes);

  bool isWarm() const;
  std::string reason() const;
  void describe(hal::StartReport* report) const;

 private:
  mutable base::Mutex mutex_;
  hal::StartReport::State state_ = hal::StartReport::State::kUncached;
  std::string reason_;
  uint64_t mappedBytes_ = 0;
  uint64_t repackedBytes_ = 0;
  uint64_t repairedBytes_ = 0;
  uint64_t hashedBytes_ = 0;
};

}  // namespace hearth::cpu
