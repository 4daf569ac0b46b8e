// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cache/object/store_key.h"

namespace hearth::cache {

// The handlers that are called for wrong segments. Always held by a shared pointer, since a token
// may outlive the store. Thread-safe.
class CorruptionHandlers : public std::enable_shared_from_this<CorruptionHandlers> {
 public:
  using Handler = std::function<void(const SegmentKey&)>;

  // Registers a handler until the result is destroyed. A call that has begun by then may go on.
  std::shared_ptr<void> add(Handler handler) {
    const auto position = insert(std::make_shared<const Handler>(std::move(handler)));
    // Without the lock: if there is no memory for the result, it calls its deleter at once.
    return std::shared_ptr<void>(nullptr, [self = shared_from_this(), position](void*) {
      std::shared_ptr<const Handler> gone;  // destroyed after the lock is released
      const std::lock_guard erasing(self->mutex_);
      gone = std::move(*position);
      self->handlers_.erase(position);
    });
  }

  // Calls the handlers without the lock: a handler may wait for threads of the store that call
  // handlers themselves.
  void call(const SegmentKey& key) {
    std::vector<std::shared_ptr<const Handler>> called;
    {
      const std::lock_guard lock(mutex_);
      called.assign(handlers_.begin(), handlers_.end());
    }
    for (const std::shared_ptr<const Handler>& handler : called) (*handler)(key);
  }

 private:
  using Handlers = std::list<std::shared_ptr<const Handler>>;

  Handlers::iterator insert(std::shared_ptr<const Handler> handler) {
    const std::lock_guard lock(mutex_);
    return handlers_.insert(handlers_.end(), std::move(handler));
  }

  base::Mutex mutex_;
  Handlers handlers_;
};

}  // namespace hearth::cache
