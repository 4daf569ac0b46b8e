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
#include <thread>

namespace hearth::cache {

// One thread that does tasks in the order in which they came, started with the first. Tasks throw
// nothing. Thread-safe.
class TaskThread {
 public:
  enum class Priority {
    kNormal,
    kIdle,  // when nothing else wants to run; whoever waits for the tasks does some of them
  };

  // post() waits while more than `maxCost` is queued.
  TaskThread(const char* name, Priority priority, size_t maxCost);
  // Stops as stop(false) does.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // False when no thread can be had or it was stopped; the task is then not run.
  bool post(std::function<void()> task, size_t cost = 0);
  // The same without waiting: false also when more than `limit` would be queued with it.
  bool tryPost(std::function<void()> task, size_t cost, size_t limit);
  // The same, not before `delay` has passed, and not at all when stopped by then.
  bool postLater(std::function<void()> task, std::chrono::nanoseconds delay);
  // Keeps a task until release(), waitUntilIdle() or stop(true); until then no thread is started
  // for it. False when `most` are kept or the thread was stopped.
  bool postHeld(std::function<void()> task, size_t most = SIZE_MAX, size_t cost = 0);
  // Posts what is kept. Where no thread can be had for it, it is done here.
  void release();
  // Posts what is kept once `delay` has passed. Where no thread can be had for it, it stays.
  void releaseLater(std::chrono::nanoseconds delay);
  // Does here what is kept, if that costs no more than `maxCost` in all.
  void doHeld(size_t maxCost);
  // Returns when all tasks posted before are done, those for later too. Not from a task.
  void waitUntilIdle();
  // After the task that runs, and those queued if `finish`, the thread ends; waits for that, except
  // from one of its tasks.
  void stop(bool finish);
  // Whether a long task should give up.
  bool isStopping() const { return state_->stopping.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Task {
    std::function<void()> run;
    size_t cost = 0;
    Clock::time_point due{};
  };
  // Outlives this object when a task destroys it.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Task> queue;
    std::deque<Task> later;
    std::deque<Task> held;
    int waiters = 0;  // while there are some, what is for later is due now
    size_t cost = 0;  // of what is queued and running
    int running = 0;
    std::atomic<bool> stopping = false;
  };
  bool start();
  // `task` is put where its time is among those for later.
  static void insertLater(State& state, Task task);
  std::deque<Task> takeHeld();
  static void queueHeld(State& state, std::deque<Task>* taken);
  // Runs the next task that is due; `lock` is let go meanwhile. False when there is none.
  static bool runNext(State& state, std::unique_lock<std::mutex>& lock);
  static void loop(const std::shared_ptr<State>& state);

  const char* const name_;
  const Priority priority_;
  const size_t maxCost_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;  // guarded by state_->mutex until stop
};

}  // namespace hearth::cache
