// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

#include "base/deadline.h"
#include "base/result.h"

namespace hearth::runtime {

// The end of one piece of work. Thread-safe.
class Event {
 public:
  // Once, by whoever does the work.
  void complete(Status status) {
    const std::lock_guard lock(mutex_);
    status_ = std::move(status);
    done_.notify_all();
  }

  bool isDone() const {
    const std::lock_guard lock(mutex_);
    return status_.has_value();
  }

  // The work's own result; nothing when the deadline passes before.
  std::optional<Status> wait(const base::Deadline& deadline) const {
    std::unique_lock lock(mutex_);
    const auto isDone = [this] {
      return status_.has_value();
    };
    if (deadline.isNever())
      done_.wait(lock, isDone);
    else
      done_.wait_until(lock, deadline.when(), isDone);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable done_;
  std::optional<Status> status_;
};

}  // namespace hearth::runtime
