// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/result.h"

namespace hearth::runtime {

// The end of one piece of work. Thread-safe.
class Event {
 public:
  Event() = default;
  // `deviceFence`: what deviceFence() duplicates.
  explicit Event(base::Descriptor deviceFence) : deviceFence_(std::move(deviceFence)) {}

  // The thread that does the work calls this once. Runs the callbacks of whenDone().
  void complete(Status status);

  bool isDone() const;

  // Returns the work's result, or nullopt when the deadline passes first. In a forked child,
  // kOpFailed for work that the parent had not finished at the fork.
  std::optional<Status> wait(const base::Deadline& deadline) const;

  // Calls `then` once with the result: immediately if the event is complete, else in the thread
  // that completes it. `then` must not wait for the event. If this throws, `then` is not called.
  void whenDone(std::function<void(const Status&)> then);

  // Returns a descriptor, owned by the caller, that poll() reports readable once the event is
  // complete. The caller must not read from it. kIo when the process has no descriptor left.
  Result<base::Descriptor> fence();

  // The same for a device that is to wait: readable as soon as the work's results are where they
  // belong, which may be before the event is complete, and also when the work has failed. Whoever
  // waits with it learns from the event how the work went.
  Result<base::Descriptor> deviceFence();

 private:
  const uint32_t generation_ = base::ForkGate::generation();
  mutable base::Mutex mutex_;
  mutable base::Condition done_;
  std::optional<Status> status_;
  std::vector<std::function<void(const Status&)>> callbacks_;
  base::Descriptor fence_;  // created by the first fence()
  const base::Descriptor deviceFence_;
};

}  // namespace hearth::runtime
