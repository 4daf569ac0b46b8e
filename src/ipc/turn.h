// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>

#include "base/fork_gate.h"
#include "base/mutex.h"

namespace hearth::ipc {

// Lets one thread at a time do long work for which others wait, without a lock that is held
// meanwhile. The turn of a thread that does not exist in a forked child counts as over there.
class Turn {
 public:
  // Waits until nobody has the turn, and takes it. `lock` locks the mutex that guards this object.
  void take(std::unique_lock<base::Mutex>& lock) {
    while (isTaken_ && generation_ == base::ForkGate::generation()) changed_.wait(lock);
    isTaken_ = true;
    generation_ = base::ForkGate::generation();
  }
  // With the mutex locked.
  void give() {
    isTaken_ = false;
    changed_.notify_all();
  }

 private:
  base::Condition changed_;
  bool isTaken_ = false;
  uint32_t generation_ = 0;
};

}  // namespace hearth::ipc
