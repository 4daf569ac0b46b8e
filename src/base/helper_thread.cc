// SPDX-License-Identifier: Apache-2.0
#include "base/helper_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "base/caught.h"
#include "base/processor.h"
#include "base/signals.h"

namespace hearth::base {

namespace {

constexpr unsigned long kOrdinarySlack = 50'000;  // nanoseconds

// Adds the processors of the main thread to those of the caller.
void widen(pthread_t thread) {
  if (::gettid() == ::getpid()) return;
  cpu_set_t own;
  cpu_set_t main;
  if (::sched_getaffinity(0, sizeof own, &own) != 0 ||
      ::sched_getaffinity(::getpid(), sizeof main, &main) != 0)
    return;
  CPU_OR(&main, &main, &own);
  if (!CPU_EQUAL(&main, &own)) ::pthread_setaffinity_np(thread, sizeof main, &main);
}

// A new thread mostly waits for its starter's processor, so this is done before its first turn.
void makeIdle(pthread_t thread) {
  const sched_param parameter{};
  ::pthread_setschedparam(thread, SCHED_IDLE, &parameter);
}

// The name that new threads of the caller begin with, while this exists: they inherit the caller's.
// A starter that named a thread after its start would write to the thread's file in /proc, and the
// kernel would keep entries of it. An idle thread that ends discards them, and as it may get no
// processor for seconds, whoever reaps a child meanwhile would spin for as long as that.
class NameToInherit {
 public:
  explicit NameToInherit(const char* name) {
    ::prctl(PR_GET_NAME, own_.data());
    ::prctl(PR_SET_NAME, name);
  }
  ~NameToInherit() { ::prctl(PR_SET_NAME, own_.data()); }
  NameToInherit(const NameToInherit&) = delete;
  NameToInherit& operator=(const NameToInherit&) = delete;

 private:
  std::array<char, 16> own_{};  // the kernel's TASK_COMM_LEN
};

// What a thread waits for before it ends: that its starter has placed it. The C library has 0 for
// the number of a thread that has ended, and the kernel takes that for the caller, whom it would
// then move or make idle in its place.
class Placing {
 public:
  void finish() {
    isOver_ = true;
    isOver_.notify_all();
  }
  void wait() const { isOver_.wait(false); }

 private:
  std::atomic<bool> isOver_ = false;
};

std::thread start(const char* name, std::function<void()> run, void (*place)(pthread_t),
                  Processors processors) noexcept {
  const sigset_t others = signalsOfOthers();
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, &others, &before);
  std::thread thread;
  // std::thread reports only by exception that there is no thread, or no memory for one.
  static_cast<void>(caught([&] {
    const auto placing = std::make_shared<Placing>();
    // An idle thread may not run for long, and would have its starter's name until then.
    std::optional<NameToInherit> inherited;
    if (place == makeIdle) inherited.emplace(name);
    thread = std::thread([name, placing, run = std::move(run)] {
      takeOrdinaryScheduling();
      // Named now, so that every thread with the name is an ordinary one.
      ::pthread_setname_np(::pthread_self(), name);
      logged(name, run);
      placing->wait();
    });
    inherited.reset();
    makeOrdinary(thread.native_handle());
    if (processors == Processors::kOfProcess) widen(thread.native_handle());
    place(thread.native_handle());
    placing->finish();
  }));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

void makeOrdinary(pthread_t thread) {
  const sched_param parameter{};
  if (::sched_getscheduler(0) != SCHED_OTHER)
    ::pthread_setschedparam(thread, SCHED_OTHER, &parameter);
}

void takeOrdinaryScheduling() {
  const sched_param parameter{};
  if (::sched_getscheduler(0) != SCHED_OTHER) ::sched_setscheduler(0, SCHED_OTHER, &parameter);
  // A nice value other than 0 is that of the whole program, which is kept, or of the starter only.
  // A higher priority needs a privilege.
  if (const int own = ::getpriority(PRIO_PROCESS, 0); own != 0) {
    const int main = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::getpid()));
    if (main != own) ::setpriority(PRIO_PROCESS, 0, main);
  }
  ::prctl(PR_SET_TIMERSLACK, kOrdinarySlack);
}

std::thread startHelperThread(const char* name, std::function<void()> run, Processors processors) {
  return start(name, std::move(run), sendAway, processors);
}

std::thread startIdleThread(const char* name, std::function<void()> run, Processors processors) {
  return start(
      name,
      [run = std::move(run)] {
        makeIdle(::pthread_self());
        run();
      },
      makeIdle, processors);
}

HelperThreads::HelperThreads(const char* name, size_t count, std::function<void()> run)
    : run_(std::move(run)) {
  // With fewer threads, or none, the caller does more of the work.
  static_cast<void>(caught([&] {
    threads_.reserve(count);
    while (threads_.size() < count) {
      std::thread thread = startHelperThread(name, [this] { runOne(); });
      if (!thread.joinable()) return;
      threads_.push_back(std::move(thread));
    }
  }));
}

void HelperThreads::runOne() noexcept {
  try {
    run_();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) failure_ = std::current_exception();
  }
}

HelperThreads::~HelperThreads() {
  for (std::thread& thread : threads_) thread.join();
}

void HelperThreads::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace hearth::base
