// SPDX-License-Identifier: Apache-2.0
// The thread pool under XNNPACK and under our own kernels.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "threads/export.h"

// pthreadpool's opaque type; a handle of ours points to a ThreadPool instead.
struct pthreadpool;

namespace hearth::threads {

// A fixed number of threads, the caller of a parallel call being one of them.
//
// Several threads may make parallel calls at the same time: one call has the workers, the others
// run in their callers alone, so that none waits for another. A parallel call from within a task
// runs serially. Workers sleep unless a run is active (see ActiveRun); then they wait for the next
// call by spinning for some tens of microseconds. In a child made by fork, the first parallel call
// starts workers anew. Workers have ordinary scheduling, whoever starts them (see
// base/helper_thread.h): a caller in real time that cannot wait for such threads takes a pool of
// one. What a task throws ends the call: its caller gets it when no thread is in a task any more.
// All members are thread-safe; destroying the pool during a call is the caller's error.
class HEARTH_THREADS_EXPORT ThreadPool {
 public:
  static constexpr size_t kMaxThreads = 1024;

  // Runs the items [begin, end) as thread `thread` of those that share the call: in
  // [0, threadCount()), one thread at a time per number.
  using RangeFunction = void (*)(void* context, size_t thread, size_t begin, size_t end);

  // How often the pool was asked, and how often it had to run a call in its caller alone although
  // that had several items (pool of one thread, workers taken, nested call).
  struct Counters {
    uint64_t calls = 0;
    uint64_t serialCalls = 0;
  };

  // `threads` includes the caller; 0 means one for each processor this process may use. Error:
  // kBadData above kMaxThreads, kResourceExhaustedTransient when a thread cannot be started.
  static Result<std::unique_ptr<ThreadPool>> create(size_t threads);
  // The same without starting threads: start() or the first parallel call does that, and where a
  // thread cannot be started then there are fewer. Error: kBadData.
  static Result<std::unique_ptr<ThreadPool>> createAsleep(size_t threads);

  // Starts the workers unless they are there, or somebody else is at it.
  void start() { static_cast<void>(belongsToThisProcess()); }

  // Joins the workers. No call may be in progress.
  ~ThreadPool();

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t threadCount() const { return threadCount_; }
  Counters counters() const;

  // What XNNPACK takes as pthreadpool_t through the private copy (target hearth_xnnpack); never
  // valid for the system's pthreadpool or XNNPACK. Lives as long as the pool.
  ::pthreadpool* nativeHandle() { return reinterpret_cast<::pthreadpool*>(this); }

  // Bracket one inference, so that workers stay awake between its operators. One bracket per thread
  // at a time; while several are active, each call leaves a thread to each of the others. Prefer
  // ActiveRun.
  void beginRun();
  void endRun();

  // Calls fn(index) or fn(index, thread) for each index in [0, count); returns when all are done.
  template <typename Function>
  void parallelFor(size_t count, Function&& fn) {
    using Plain = std::remove_reference_t<Function>;
    run(
        count,
        [](void* context, size_t thread, size_t begin, size_t end) {
          Plain& call = *static_cast<Plain*>(context);
          for (size_t i = begin; i < end; ++i) {
            if constexpr (std::is_invocable_v<Plain&, size_t, size_t>) {
              call(i, thread);
            } else {
              call(i);
            }
          }
        },
        const_cast<void*>(static_cast<const void*>(&fn)), 0);
  }

  // The call that all others are made of. `flags` are pthreadpool's.
  void run(size_t count, RangeFunction function, void* context, uint32_t flags);

  // The same on the calling thread only.
  static void runSerially(size_t count, RangeFunction function, void* context, uint32_t flags);

 private:
  struct alignas(64) Slot {
    std::atomic<uint64_t> range{0};
  };
  struct Job {
    RangeFunction function = nullptr;
    void* context = nullptr;
    size_t base = 0;
    uint32_t flags = 0;
    size_t participants = 1;
  };

  explicit ThreadPool(size_t threads);

  Status startWorkers();
  void stopWorkers();
  bool belongsToThisProcess();
  void runShared(size_t workers, size_t base, uint32_t count, RangeFunction function, void* context,
                 uint32_t flags);
  void work(size_t index);
  void waitForWorkers();
  void workerLoop();
  bool waitForJob(uint32_t seen, bool maySpin);
  static void* workerEntry(void* pool);

  const size_t threadCount_;
  std::vector<pthread_t> workers_;
  std::vector<Slot> slots_;
  std::atomic<uint32_t> generation_;

  alignas(64) Job job_;
  std::atomic<uint32_t> ticketLimit_{0};
  // Epoch, open bit, tickets given, tickets returned: see thread_pool.cc.
  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<uint32_t> wakeWord_{0};
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<int> callerProcessor_{-1};  // when it last woke somebody
  alignas(64) std::atomic<uint32_t> activeRuns_{0};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<uint32_t> callerSleeps_{0};
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> serialCalls_{0};
};

// Holds a run of `pool` active; a null pool is accepted. Not thread-safe, stays on one thread.
class ActiveRun {
 public:
  explicit ActiveRun(ThreadPool* pool) : pool_(pool) {
    if (pool_ != nullptr) pool_->beginRun();
  }
  ~ActiveRun() {
    if (pool_ != nullptr) pool_->endRun();
  }
  ActiveRun(const ActiveRun&) = delete;
  ActiveRun& operator=(const ActiveRun&) = delete;

 private:
  ThreadPool* pool_;
};

}  // namespace hearth::threads
