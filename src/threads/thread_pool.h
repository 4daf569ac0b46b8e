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
// run on their callers alone, so that none waits for another. A parallel call from within a task
// runs serially. Workers sleep unless a run is active (see ActiveRun) or runs follow each other at
// once; then they spin for some tens of microseconds while they wait for the next call. In a forked
// child, the first parallel call starts workers anew. Workers have ordinary scheduling, even if a
// real-time thread starts them (see base/helper_thread.h): a real-time caller that cannot wait for
// such threads takes a pool of one thread. An exception in a task ends the call, which throws it
// when no thread is in a task any more. All members are thread-safe; the pool must not be destroyed
// during a call.
class HEARTH_THREADS_EXPORT ThreadPool {
 public:
  static constexpr size_t kMaxThreads = 1024;

  // Runs the items [begin, end) as thread `thread` of those that share the call: in
  // [0, threadCount()), one thread at a time per number.
  using RangeFunction = void (*)(void* context, size_t thread, size_t begin, size_t end);

  // Number of calls, of calls with several items that ran on their caller alone (pool of one
  // thread, workers in use, nested call), and of calls that found a worker asleep.
  struct Counters {
    uint64_t calls = 0;
    uint64_t serialCalls = 0;
    uint64_t wakingCalls = 0;
  };

  // `threads` includes the caller; 0 means one for each processor this process may use. Error:
  // kBadData above kMaxThreads, kResourceExhaustedTransient when a thread cannot be started.
  static Result<std::unique_ptr<ThreadPool>> create(size_t threads);
  // The same without starting threads: start() or the first parallel call starts them, or as many
  // as it can. Error: kBadData.
  static Result<std::unique_ptr<ThreadPool>> createAsleep(size_t threads);

  // Starts the workers, unless they have been started or another thread is starting them.
  void start() { static_cast<void>(belongsToThisProcess()); }

  // Joins the workers. No call may be in progress.
  ~ThreadPool();

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t threadCount() const { return threadCount_; }
  Counters counters() const;

  // The pthreadpool_t for the private copy of XNNPACK (target hearth_xnnpack); never valid for the
  // system's pthreadpool or XNNPACK. Valid as long as the pool.
  ::pthreadpool* nativeHandle() { return reinterpret_cast<::pthreadpool*>(this); }

  // Mark the beginning and the end of one inference, so that workers stay awake between its
  // operators. A thread has at most one run at a time; while several runs are active, each call
  // leaves a thread to each of the others. Prefer ActiveRun.
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
  bool waitForJob(uint32_t seen, bool maySpin, bool* runsFollow);
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
  std::atomic<int> callerProcessor_{-1};  // of the caller that last woke workers
  alignas(64) std::atomic<uint32_t> activeRuns_{0};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<uint32_t> callerSleeps_{0};
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> serialCalls_{0};
  std::atomic<uint64_t> wakingCalls_{0};
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
