// SPDX-License-Identifier: Apache-2.0
// Writes clients' cache files in the background, after prepareModel() has returned.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "cache/store/segment_store.h"
#include "hal/device.h"

namespace hearth::cpu {

// The saves of one process, one after another on a thread of their own. A forked child has none of
// its parent's. A process that exits waits for them first, under the conditions of
// flushBeforeExit(). Thread-safe.
class SaveQueue {
 public:
  class Save {
   public:
    // Returns when the save is over; at once in a child that was forked since it was posted. The
    // caller is not inside the ForkGate.
    void finish();

   private:
    friend class SaveQueue;
    hal::CacheToken token{};
    std::shared_ptr<cache::SegmentStore> store;
    std::function<void()> run;
    uint32_t generation = 0;  // base::ForkGate::generation()
    std::atomic<bool> isOver = false;
  };

  // Calls `run` when `store` has written what it was given before. What `run` refers to stays until
  // the save is over: the owner of the result calls finish() first. Where there is no thread for
  // it, it is run here. `run` throws nothing.
  static std::shared_ptr<Save> post(const hal::CacheToken& token,
                                    std::shared_ptr<cache::SegmentStore> store,
                                    std::function<void()> run);

  // Returns when no save under this token is open that was posted before: a model that is prepared
  // once more in the same process finds its files.
  static void waitFor(const hal::CacheToken& token);

  // Returns when all saves that were posted before are over. Gives up when for `patience` nothing
  // moves; false then.
  static bool finishAll(std::chrono::nanoseconds patience = std::chrono::nanoseconds::max());
};

}  // namespace hearth::cpu
