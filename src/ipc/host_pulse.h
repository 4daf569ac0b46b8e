// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "base/mutex.h"

namespace hearth::ipc {

// The client's end of the pulse of a host. A host that answers what it likes can seem alive or not,
// and nothing else. Thread-safe.
class HostPulse {
 public:
  using Clock = base::Deadline::Clock;

  // What is known of the host.
  struct Beat {
    Clock::duration silence{};  // since the question that it has not answered; 0: it has
    uint64_t steps = 0;         // as it said last
  };

  // `socket` is connected to the host, and keeps messages apart.
  explicit HostPulse(base::Descriptor socket) : socket_(std::move(socket)) {}

  // Takes the answers that have come, and asks again unless a question is open. Does not wait.
  Beat look();

 private:
  const base::Descriptor socket_;
  base::Mutex mutex_;
  // Guarded by mutex_.
  uint64_t asked_ = 0;  // number of the last question
  bool isOpen_ = false;
  Clock::time_point askedAt_;
  uint64_t steps_ = 0;
};

}  // namespace hearth::ipc
