// SPDX-License-Identifier: Apache-2.0
// A mutex and a condition that work in a forked child, whatever the parent's other threads were
// doing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "base/fork_gate.h"

namespace hearth::base {

// Like std::mutex. Its holder is inside the ForkGate, so in a child no other thread holds it, and
// the data under it is whole. Not for long work, for which forks would wait, and not to be held
// while waiting for other threads.
class Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() {
    ForkGate::enter();
    mutex_.lock();
  }
  bool try_lock() {
    ForkGate::enter();
    if (mutex_.try_lock()) return true;
    ForkGate::leave();
    return false;
  }
  void unlock() {
    mutex_.unlock();
    ForkGate::leave();
  }

 private:
  std::mutex mutex_;
};

// Like std::condition_variable, for Mutex. Threads that wait while another one forks leave nothing
// behind in the child. A waiting thread must hold no other Mutex.
class Condition {
 public:
  constexpr Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  void notify_all();
  void notify_one();

  void wait(std::unique_lock<Mutex>& lock) { waitOnce(lock, nullptr); }
  template <typename Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate isDone) {
    while (!isDone()) wait(lock);
  }

  void wait_until(std::unique_lock<Mutex>& lock, std::chrono::steady_clock::time_point when) {
    waitOnce(lock, &when);
  }
  // Returns the last result of `isDone`.
  template <typename Predicate>
  bool wait_until(std::unique_lock<Mutex>& lock, std::chrono::steady_clock::time_point when,
                  Predicate isDone) {
    while (!isDone()) {
      if (std::chrono::steady_clock::now() >= when) return isDone();
      wait_until(lock, when);
    }
    return true;
  }

 private:
  void waitOnce(std::unique_lock<Mutex>& lock, const std::chrono::steady_clock::time_point* when);
  void wake(int count);

  std::atomic<uint32_t> changes_ = 0;
  std::atomic<uint32_t> waiters_ = 0;  // may be too high in a child
};

}  // namespace hearth::base
