// SPDX-License-Identifier: Apache-2.0
#include "runtime/event.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "base/caught.h"
#include "base/fence_order.h"

namespace hearth::runtime {

void Event::complete(Status status) {
  std::vector<std::function<void(const Status&)>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    status_ = std::move(status);
    callbacks.swap(callbacks_);
    base::beforeSignallingFence();
    if (fence_.valid()) ::eventfd_write(fence_.get(), 1);
    done_.notify_all();
  }
  // Without the lock: the result does not change any more.
  for (const auto& callback : callbacks)
    base::logged("What follows an execution", [&] { callback(*status_); });
}

bool Event::isDone() const {
  const std::lock_guard lock(mutex_);
  return status_.has_value();
}

std::optional<Status> Event::wait(const base::Deadline& deadline) const {
  std::unique_lock lock(mutex_);
  const auto isDone = [this] {
    return status_.has_value();
  };
  if (!status_ && generation_ != base::ForkGate::generation())
    return fail(ErrorCode::kOpFailed, "The computation belongs to the parent of this process.");
  if (deadline.isNever())
    done_.wait(lock, isDone);
  else
    done_.wait_until(lock, deadline.when(), isDone);
  return status_;
}

void Event::whenDone(std::function<void(const Status&)> then) {
  {
    const std::lock_guard lock(mutex_);
    if (!status_) {
      callbacks_.push_back(std::move(then));
      return;
    }
  }
  then(*status_);
}

Result<base::Descriptor> Event::deviceFence() {
  if (deviceFence_.valid()) return deviceFence_.duplicate();
  return fence();
}

Result<base::Descriptor> Event::fence() {
  const std::lock_guard lock(mutex_);
  if (!fence_.valid()) {
    if (status_) base::beforeSignallingFence();
    fence_.reset(::eventfd(status_ ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fence_.valid()) return std::unexpected(base::errnoError(errno, "Making a fence"));
  }
  return fence_.duplicate();
}

}  // namespace hearth::runtime
