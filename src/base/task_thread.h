// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace hearth::base {

// A thread that runs tasks in the order in which they were posted. The first task starts it. A
// thread that waits for tasks runs some of them itself. Tasks should not throw: an exception is
// only logged. Thread-safe.
class TaskThread {
 public:
  enum class Priority {
    kNormal,
    kIdle,  // runs when nothing else does; several tasks may run at a time
  };

  // post() blocks while more than `maxCost` is queued, unless the caller is inside the ForkGate.
  TaskThread(const char* name, Priority priority, size_t maxCost);
  // Stops like stop(false).
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Starts the thread before there is a task: a thread that an idle thread starts may have to stay
  // idle.
  void startNow();

  // Queues a task. Returns false, without queueing it, when no thread can be had or the thread was
  // stopped. Throws std::bad_alloc, like the next functions.
  bool post(std::function<void()> task, size_t cost = 0);
  // The same without blocking: also false when more than `limit` would then be queued.
  bool tryPost(std::function<void()> task, size_t cost, size_t limit);
  // Like post(), but the task runs after `delay` at the earliest, and never if the thread is
  // stopped before.
  bool postLater(std::function<void()> task, std::chrono::nanoseconds delay);
  // Keeps a task until release(), waitUntilIdle() or stop(true), without starting a thread for it.
  // False when `most` tasks are kept already or the thread was stopped.
  bool postHeld(std::function<void()> task, size_t most = SIZE_MAX, size_t cost = 0);
  // Posts the kept tasks. Runs them on the calling thread when no thread can be had.
  void release();
  // Posts the kept tasks after `delay`. They stay kept when no thread can be had.
  void releaseLater(std::chrono::nanoseconds delay);
  // Returns when all tasks posted before are done, including delayed and kept ones and those that
  // these tasks post. A task may call this only to exit the process.
  void waitUntilIdle() { static_cast<void>(waitUntilDone(std::chrono::nanoseconds::max())); }
  // The same, but returns false when, for `patience`, no task ended and no thread of the process
  // wrote a file of a store (writeProgress()).
  bool waitUntilDone(std::chrono::nanoseconds patience);
  // Ends the thread after the running task, or, if `finish`, after all queued ones, and waits for
  // that unless called from one of its tasks.
  void stop(bool finish);
  // Whether a long task should give up.
  bool isStopping() const { return state_->stopping.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Task {
    std::function<void()> run;
    size_t cost = 0;
    Clock::time_point due{};
    uint64_t number = 0;  // in the order of posting; unset while the task is kept
  };
  // Outlives the TaskThread when a task destroys it.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    // Lists, so that tasks move between them without allocation.
    std::list<Task> queue;
    std::list<Task> later;
    std::list<Task> held;
    int waiters = 0;                // while there are some, delayed tasks are due now
    size_t cost = 0;                // of queued and running tasks
    std::vector<uint64_t> running;  // their numbers
    uint64_t posted = 0;            // the last number given
    size_t finished = 0;
    bool isOrdered = false;  // one task at a time
    std::atomic<bool> stopping = false;

    // Whether a task with this number or a lower one is not yet done.
    bool hasUpTo(uint64_t number) const;
  };
  bool start();
  static void setNumber(State& state, Task& task);
  static void enqueue(State& state, Task task);
  // Catches what a task throws, so that the next ones run.
  static void run(const Task& task) noexcept;
  // Inserts `task` into `later`, in the order of their times.
  static void insertLater(State& state, Task task);
  std::list<Task> takeHeld();
  static void queueHeld(State& state, std::list<Task>* taken);
  // Runs the next due task, releasing `lock` meanwhile. False when there is none.
  static bool runNext(State& state, std::unique_lock<std::mutex>& lock);
  static void leaveOwnTask(State& state);
  static void loop(const std::shared_ptr<State>& state);

  const char* const name_;
  const Priority priority_;
  const size_t maxCost_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;  // guarded by state_->mutex until stop
};

}  // namespace hearth::base
