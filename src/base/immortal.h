// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include "base/mutex.h"

namespace hearth::base {

// An object that is made at its first use and never destroyed: threads use the library until the
// process is gone, while exit() destroys static objects. All state of a library that has a
// destructor is in one of these (tools/check_static_objects.py):
//
//   constinit base::Immortal<Table> table;
//   ... table.get() ...
//
// The object is made inside the ForkGate: in a child, a static variable of a function would wait
// for ever for the thread of the parent that was making it. Thread-safe.
template <typename Object>
class Immortal {
 public:
  constexpr Immortal() = default;
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  Object& get() {
    return get([] { return Object(); });
  }
  // Made from what the first caller's `make` returns.
  template <typename Make>
  Object& get(Make&& make) {
    if (Object* const made = object_.load(std::memory_order_acquire)) return *made;
    const std::lock_guard lock(mutex_);
    if (object_.load(std::memory_order_relaxed) == nullptr)
      object_.store(new Object(std::forward<Make>(make)()), std::memory_order_release);
    return *object_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<Object*> object_ = nullptr;
  Mutex mutex_;
};

}  // namespace hearth::base
