// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace hearth::llm_server {

// Work that is done in steps. All functions are called by the scheduler's thread.
class Task {
 public:
  enum class Start { kStarted, kMustWait, kEnded };

  virtual ~Task() = default;
  // Whether anybody still waits for its result; it ends where not.
  virtual bool isWanted() = 0;
  // Takes what it needs. kMustWait: that is in use by other tasks.
  virtual Start start() = 0;
  // Does one step. Returns false when it was the last one.
  virtual bool step() = 0;
};

// Runs tasks by turns on one thread: the next step is that of the task that has had the least time
// so far, so that nobody waits for a long prompt or a long answer of another one. Tasks start in
// the order in which they were added.
class Scheduler {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  explicit Scheduler(Now now = Clock::now) : now_(std::move(now)) {}

  // Thread-safe.
  void add(std::unique_ptr<Task> task);
  // Makes run() return after the step that is being done. Thread-safe.
  void stop();

  // Runs the tasks until stop() is called, and then destroys those that are left.
  void run();

  size_t running() const { return runningCount_; }
  size_t waiting() const { return waitingCount_; }

 private:
  struct Running {
    std::unique_ptr<Task> task;
    Clock::duration used{};
  };

  bool takeAdded();
  void startWaiting();
  void runOne();

  const Now now_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Task>> added_;
  bool isStopped_ = false;
  std::deque<std::unique_ptr<Task>> waiting_;
  std::vector<Running> running_;
  std::atomic<size_t> runningCount_ = 0;
  std::atomic<size_t> waitingCount_ = 0;
};

}  // namespace hearth::llm_server
