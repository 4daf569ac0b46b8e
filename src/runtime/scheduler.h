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

// Threads that run executions for callers who do not wait. Thread-safe. Work of higher priority
// starts first, within a priority in the order of submission.
class Scheduler {
 public:
  explicit Scheduler(unsigned maxThreads) : maxThreads_(maxThreads) {}
  // Runs what is queued, then ends the threads.
  ~Scheduler();

  // One for the process; made anew in a forked child, where the parent's threads do not exist.
  static Scheduler& shared();

  // Threads start on demand and stay. kResourceExhaustedTransient when none runs and none starts.
  Status submit(hal::Priority priority, std::function<void()> work);

 private:
  void work();

  const unsigned maxThreads_;
  std::mutex mutex_;
  std::condition_variable hasWork_;
  // Negated priority and sequence number: begin() is next.
  std::map<std::pair<int32_t, uint64_t>, std::function<void()>> queue_;
  std::vector<std::thread> threads_;
  uint64_t sequence_ = 0;
  unsigned idle_ = 0;
  bool isEnding_ = false;
};

}  // namespace hearth::runtime
