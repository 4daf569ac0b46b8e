// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/descriptor.h"
#include "hal/progress.h"

namespace hearth::ipc {

// The host's end of a client's pulse. Counts the steps of what the host does for the client:
// whoever works for it tells it of progress. Thread-safe.
class ServedPulse final : public hal::Progress {
 public:
  // Answers on this socket from now on. Called once.
  void connect(base::Descriptor socket);

  // To be waited for; -1 as long as there is none.
  int socket() const;

  // Answers the question that has come last, and does not wait. A client that goes, or does not
  // read what it asked for, has no pulse any more.
  void answer();

  void begins(size_t /*step*/, size_t /*steps*/) override {
    steps_.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  mutable std::mutex mutex_;
  base::Descriptor socket_;  // guarded by mutex_
  std::atomic<uint64_t> steps_ = 0;
};

}  // namespace hearth::ipc
