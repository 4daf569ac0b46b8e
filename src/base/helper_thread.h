// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hearth::base {

// A new thread inherits its starter's policy, priority, processors, timer slack and memory policy.
// The starter may be any thread of the program: a real-time one, an idle one, or one bound to a
// processor. So threads that the program does not know are made ordinary instead.

// The processors on which such a thread may run.
enum class Processors {
  kOfCaller,   // for a thread that works for its starter only
  kOfProcess,  // also the main thread's: for one that works for the whole process
};

// Starts a thread that the program does not know: the program's signal handlers do not run on it
// (see signalsOfOthers), it has ordinary scheduling (see takeOrdinaryScheduling), and it starts on
// another processor than the caller's if it may. `name`, at most 15 characters, is what tools show.
// When no thread can be had, the result is not joinable and `run` is not called. What `run` throws
// ends in a log line, so code that waits for its work must learn of failures in another way.
[[nodiscard]] std::thread startHelperThread(const char* name, std::function<void()> run,
                                            Processors processors = Processors::kOfCaller);

// The same for work that can wait: the thread runs only when nothing else does (SCHED_IDLE), on any
// processor. It is made idle before its first turn: a thread that lowered itself would first take a
// turn from somebody, 4 ms where the kernel's clock ticks 250 times a second. It must not hold a
// lock that others wait for.
[[nodiscard]] std::thread startIdleThread(const char* name, std::function<void()> run,
                                          Processors processors = Processors::kOfCaller);

// Gives SCHED_OTHER to a thread that the caller has just made, if it has another policy; done
// before its first turn, for which an idle thread may wait long. `thread` is joinable.
void makeOrdinary(pthread_t thread);

// Gives the calling thread SCHED_OTHER, the main thread's nice value and the standard timer slack,
// as far as it may: without a privilege (CAP_SYS_NICE or RLIMIT_NICE) no thread, nor any that it
// starts, can leave SCHED_IDLE or get a higher priority.
void takeOrdinaryScheduling();

// Threads that share a piece of work with the thread that makes this. The destructor joins them, so
// that none goes on working in a frame that an exception has unwound.
class HelperThreads {
 public:
  // Starts up to `count` threads that call `run`; fewer when no more can be had.
  HelperThreads(const char* name, size_t count, std::function<void()> run);
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  // Waits for all threads, then throws the first exception that `run` threw on one of them.
  void join();

 private:
  void runOne() noexcept;

  const std::function<void()> run_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::exception_ptr failure_;  // guarded by mutex_ until all are joined
};

}  // namespace hearth::base
