// SPDX-License-Identifier: Apache-2.0
#include "runtime/scheduler.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/caught.h"
#include "base/helper_thread.h"

namespace hearth::runtime {

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    isEnding_ = true;
  }
  hasWork_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Scheduler& Scheduler::shared() {
  struct Owned {
    pid_t process;
    Scheduler scheduler{std::max(2u, std::thread::hardware_concurrency())};
  };
  static std::atomic<Owned*> current = nullptr;
  Owned* seen = current.load(std::memory_order_acquire);
  // Never destroyed: a copy inherited from the parent has no threads to join, and the process's own
  // scheduler may have work in flight while the process exits.
  while (seen == nullptr || seen->process != getpid()) {
    auto* fresh = new Owned{getpid()};
    if (current.compare_exchange_strong(seen, fresh, std::memory_order_acq_rel))
      return fresh->scheduler;
    delete fresh;
  }
  return seen->scheduler;
}

Status Scheduler::submit(hal::Priority priority, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (idle_ <= queue_.size() && threads_.size() < maxThreads_) {
    threads_.reserve(threads_.size() + 1);
    std::thread thread = base::startHelperThread(
        "hearth-runs", [this] { this->work(); }, base::Processors::kOfProcess);
    if (!thread.joinable() && threads_.empty())
      return fail(ErrorCode::kResourceExhaustedTransient, "No thread can be started.");
    if (thread.joinable()) threads_.push_back(std::move(thread));
  }
  queue_.emplace(std::pair(-static_cast<int32_t>(priority), sequence_++), std::move(work));
  hasWork_.notify_one();
  return {};
}

void Scheduler::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    hasWork_.wait(lock, [this] { return isEnding_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return;
    const std::function<void()> next = std::move(queue_.begin()->second);
    queue_.erase(queue_.begin());
    lock.unlock();
    base::logged("An execution in the background", next);
    lock.lock();
  }
}

}  // namespace hearth::runtime
