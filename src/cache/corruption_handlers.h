// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "cache/segment_key.h"

namespace hearth::cache {

// Who wants to know about wrong segments. Always held by a shared pointer, since a token may
// outlive the store. Thread-safe.
class CorruptionHandlers : public std::enable_shared_from_this<CorruptionHandlers> {
 public:
  using Handler = std::function<void(const SegmentKey&)>;

  // Until the result is destroyed, which waits for a call that runs.
  std::shared_ptr<void> add(Handler handler) {
    const std::lock_guard lock(mutex_);
    const auto position = handlers_.insert(handlers_.end(), std::move(handler));
    return std::shared_ptr<void>(nullptr, [self = shared_from_this(), position](void*) {
      const std::lock_guard erasing(self->mutex_);
      self->handlers_.erase(position);
    });
  }

  void call(const SegmentKey& key) {
    const std::lock_guard lock(mutex_);
    for (const Handler& handler : handlers_) handler(key);
  }

  // For fork.
  std::mutex& mutex() { return mutex_; }

 private:
  std::mutex mutex_;
  std::list<Handler> handlers_;
};

}  // namespace hearth::cache
