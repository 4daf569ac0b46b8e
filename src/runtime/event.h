// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/result.h"

namespace hearth::runtime {

// The end of one piece of work. Thread-safe.
class Event {
 public:
  // Once, by whoever does the work.
  void complete(Status status);

  bool isDone() const;

  // The work's own result; nothing when the deadline passes before. In a forked child, of work that
  // the parent has not done by then: kOpFailed.
  std::optional<Status> wait(const base::Deadline& deadline) const;

  // Calls `then` once with the result: at once when there is one, else in the thread that completes
  // the event. `then` must not wait for the event. Where this throws, `then` is not called.
  void whenDone(std::function<void(const Status&)> then);

  // A descriptor for the caller that poll() reports readable once the event is complete; nobody may
  // read from it. kIo when the process has no descriptor left.
  Result<base::Descriptor> fence();

 private:
  const uint32_t generation_ = base::ForkGate::generation();
  mutable base::Mutex mutex_;
  mutable base::Condition done_;
  std::optional<Status> status_;
  std::vector<std::function<void(const Status&)>> callbacks_;
  base::Descriptor fence_;  // made when it is asked for
};

}  // namespace hearth::runtime
