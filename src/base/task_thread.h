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

// One thread that does tasks in the order in which they came, started with the first. Whoever waits
// for tasks does some of them. Tasks throw nothing. Thread-safe.
class TaskThread {
 public:
  enum class Priority {
    kNormal,
    kIdle,  // when nothing else wants to run; several tasks may be done at a time
  };

  // post() waits while more than `maxCost` is queued, unless the caller is inside the ForkGate.
  TaskThread(const char* name, Priority priority, size_t maxCost);
  // Stops as stop(false) does.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Starts the thread before there is a task: one that an idle thread makes may have to stay idle.
  void startNow();

  // False when no thread can be had or it was stopped; the task is then not run. Throws
  // std::bad_alloc, as the next ones.
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
  // Returns when all tasks posted before are done, those for later and those that they post, too. A
  // task may call it only to exit the process.
  void waitUntilIdle() { static_cast<void>(waitUntilDone(std::chrono::nanoseconds::max())); }
  // The same; false when for `patience` no task ended and nobody in the process wrote a file of a
  // store (writeProgress()).
  bool waitUntilDone(std::chrono::nanoseconds patience);
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
    uint64_t number = 0;  // in the order of posting; of those that are kept none yet
  };
  // Outlives this object when a task destroys it.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    // Lists, between which tasks move without taking memory.
    std::list<Task> queue;
    std::list<Task> later;
    std::list<Task> held;
    int waiters = 0;                // while there are some, what is for later is due now
    size_t cost = 0;                // of what is queued and running
    std::vector<uint64_t> running;  // numbers
    uint64_t posted = 0;            // the last number
    size_t finished = 0;
    bool isOrdered = false;  // one task at a time
    std::atomic<bool> stopping = false;

    // Whether a task up to this number is not done yet.
    bool hasUpTo(uint64_t number) const;
  };
  bool start();
  static void setNumber(State& state, Task& task);
  static void enqueue(State& state, Task task);
  // What a task throws ends here, so that the next ones run.
  static void run(const Task& task) noexcept;
  // `task` is put where its time is among those for later.
  static void insertLater(State& state, Task task);
  std::list<Task> takeHeld();
  static void queueHeld(State& state, std::list<Task>* taken);
  // Runs the next task that is due; `lock` is let go meanwhile. False when there is none.
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
