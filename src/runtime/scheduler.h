// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "hal/device.h"

namespace hearth::runtime {

// Threads that run executions in the background. Work of higher priority starts first, work of
// equal priority in the order of submission. Thread-safe.
class Scheduler {
 public:
  explicit Scheduler(unsigned maxThreads) : maxThreads_(maxThreads) {}
  // Runs all queued work, then ends the threads.
  ~Scheduler();

  // The process's scheduler. A forked child makes its own, since it has none of the parent's
  // threads.
  static Scheduler& shared();

  // Threads start on demand and stay. kResourceExhaustedTransient when none runs and none can be
  // started.
  Status submit(hal::Priority priority, std::function<void()> work);

 private:
  void work();

  const unsigned maxThreads_;
  std::mutex mutex_;
  std::condition_variable hasWork_;
  // Keys are the negated priority and the sequence number, so begin() is next.
  std::map<std::pair<int32_t, uint64_t>, std::function<void()>> queue_;
  std::vector<std::thread> threads_;
  uint64_t sequence_ = 0;
  unsigned idle_ = 0;
  bool isEnding_ = false;
};

}  // namespace hearth::runtime
