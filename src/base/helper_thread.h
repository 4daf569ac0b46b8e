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

// A new thread has its maker's policy, priority, processors, timer slack and memory policy, and the
// maker may be any thread of the program: one in real time, an idle one, one that is bound to a
// processor. Threads that the program does not know are ordinary ones instead.

// Where such a thread may run.
enum class Processors {
  kOfCaller,   // one that works for its maker only
  kOfProcess,  // the main thread's, too: for one that works for the whole process
};

// Starts a thread that the program does not know: its signal handlers do not run there (see
// signalsOfOthers), it has ordinary scheduling (see takeOrdinaryScheduling), and it starts on
// another processor than the caller's if it may. `name`, at most 15 characters, is what tools show.
// Not joinable where no thread can be had; `run` is then not run. What `run` throws ends there,
// with a log line: who waits for what it does has to hear of failures otherwise.
[[nodiscard]] std::thread startHelperThread(const char* name, std::function<void()> run,
                                            Processors processors = Processors::kOfCaller);

// The same for what can wait: it runs where nobody else does (SCHED_IDLE), on whatever processor
// that is. Its maker says so before its first turn: a thread that lowers itself has first taken
// somebody's, 4 ms where the kernel's clock ticks 250 times a second. It must not hold a lock that
// others wait for.
[[nodiscard]] std::thread startIdleThread(const char* name, std::function<void()> run,
                                          Processors processors = Processors::kOfCaller);

// Gives SCHED_OTHER to a thread that the calling one has just made, if that has another policy:
// before its first turn, for which an idle thread may wait long. `thread` is joinable.
void makeOrdinary(pthread_t thread);

// Gives the calling thread SCHED_OTHER, the main thread's nice value and the standard timer slack,
// as far as it may: without a privilege (CAP_SYS_NICE, or RLIMIT_NICE) no thread leaves SCHED_IDLE
// or gets a higher priority, nor do those that it makes.
void takeOrdinaryScheduling();

// Threads that share one piece of work with the one that makes this: they are joined before it is
// left, however that happens, so that none works on in a frame that was unwound.
class HelperThreads {
 public:
  // Starts up to `count` threads that call `run`; fewer where no more can be had.
  HelperThreads(const char* name, size_t count, std::function<void()> run);
  ~HelperThreads();
  HelperThreads(const HelperThreads&) = delete;
  HelperThreads& operator=(const HelperThreads&) = delete;

  // Waits for all of them, and throws the first exception that `run` threw on one.
  void join();

 private:
  void runOne() noexcept;

  const std::function<void()> run_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::exception_ptr failure_;  // guarded by mutex_ until all are joined
};

}  // namespace hearth::base
