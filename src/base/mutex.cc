// SPDX-License-Identifier: Apache-2.0
#include "base/mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace hearth::base {

void Condition::notify_all() {
  wake(INT_MAX);
}

void Condition::notify_one() {
  wake(1);
}

// Either this thread sees the waiter's count, or the waiter's futex sees the new number: it reads
// the word behind a barrier of the kernel, so the count cannot come later.
void Condition::wake(int count) {
  changes_.fetch_add(1);
  if (waiters_.load() == 0) return;
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&changes_), FUTEX_WAKE_PRIVATE, count, nullptr,
            nullptr, 0);
}

void Condition::waitOnce(std::unique_lock<Mutex>& lock,
                         const std::chrono::steady_clock::time_point* when) {
  timespec until{};
  if (when != nullptr) {
    constexpr int64_t kSecond = 1'000'000'000;
    const int64_t nanoseconds =
        std::chrono::duration_cast<std::chrono::nanoseconds>(when->time_since_epoch()).count();
    if (nanoseconds <= 0) return;
    until = {nanoseconds / kSecond, nanoseconds % kSecond};
  }
  const uint32_t seen = changes_.load();
  waiters_.fetch_add(1);
  lock.unlock();
  // The steady clock is CLOCK_MONOTONIC, which this operation uses.
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&changes_),
            FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, when == nullptr ? nullptr : &until,
            nullptr, FUTEX_BITSET_MATCH_ANY);
  waiters_.fetch_sub(1);
  lock.lock();
}

}  // namespace hearth::base
