// SPDX-License-Identifier: Apache-2.0
#include "ipc/sandbox_threads.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hearth::ipc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSignal = SIGSYS;
// An idle thread may have to wait for a processor.
constexpr std::chrono::seconds kPatience(20);
// The C library blocks all signals now and then, for moments.
constexpr std::chrono::milliseconds kLongestBlock(500);
constexpr timespec kNap{0, 100'000};
// Each looks for threads that started during the one before.
constexpr int kMostPasses = 1000;

// What the handler does, and for which thread.
struct Request {
  std::atomic<int (*)(int)> action = nullptr;
  std::atomic<int> argument = 0;
  std::atomic<pid_t> thread = 0;  // 0: none
  std::atomic<int> result = 0;
  std::atomic<bool> isDone = false;
};
constinit Request request;

pid_t ownThread() {
  return static_cast<pid_t>(::syscall(SYS_gettid));
}

void handle(int, siginfo_t*, void*) {
  const int error = errno;
  if (request.thread.load() == ownThread() && !request.isDone.load()) {
    request.result.store(request.action.load()(request.argument.load()));
    request.isDone.store(true);
  }
  errno = error;
}

Result<std::vector<pid_t>> threads() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/task"), &::closedir);
  if (folder == nullptr)
    return std::unexpected(base::errnoError(errno, "Listing the threads in /proc/self/task"));
  std::vector<pid_t> found;
  while (const dirent* const entry = ::readdir(folder.get())) {
    const int number = std::atoi(entry->d_name);
    if (number > 0) found.push_back(number);
  }
  return found;
}

// Whether the thread blocks the signal; false when that cannot be told.
bool blocksSignal(pid_t thread) {
  std::ifstream status(base::formatText("/proc/self/task/{}/status", thread));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigBlk:")) continue;
    const uint64_t mask = std::strtoull(line.c_str() + 7, nullptr, 16);
    return (mask >> (kSignal - 1) & 1) != 0;
  }
  return false;
}

// Returns when the thread has called the action, or is gone.
Status callOn(pid_t thread) {
  request.isDone.store(false);
  request.result.store(0);
  request.thread.store(thread);
  const pid_t process = ::getpid();
  if (::syscall(SYS_tgkill, process, thread, kSignal) != 0) {
    if (errno == ESRCH) return {};
    return std::unexpected(base::errnoError(errno, "Sending a signal to a thread"));
  }
  const Clock::time_point begin = Clock::now();
  while (!request.isDone.load()) {
    // Signal 0 asks whether it is still there.
    if (::syscall(SYS_tgkill, process, thread, 0) != 0) return {};
    const Clock::duration waited = Clock::now() - begin;
    if (waited > kLongestBlock && blocksSignal(thread))
      return fail(ErrorCode::kBadState, "The thread {} blocks SIGSYS and so cannot be restricted.",
                  thread);
    if (waited > kPatience)
      return fail(ErrorCode::kBadState,
                  "The thread {} has not run for {} seconds and so cannot be restricted.", thread,
                  kPatience.count());
    ::nanosleep(&kNap, nullptr);
  }
  if (const int error = request.result.load(); error != 0)
    return std::unexpected(
        base::errnoError(error, base::formatText("Restricting the thread {}", thread)));
  return {};
}

Status callOnOthers() {
  std::set<pid_t> done = {ownThread()};
  for (int pass = 0; pass < kMostPasses; ++pass) {
    bool isComplete = true;
    HEARTH_ASSIGN(const std::vector<pid_t> found, threads());
    for (const pid_t thread : found) {
      if (!done.insert(thread).second) continue;
      isComplete = false;
      HEARTH_TRY(callOn(thread));
    }
    if (isComplete) return {};
  }
  return fail(ErrorCode::kBadState, "The process starts threads all the time.");
}

}  // namespace

Status onEveryThread(int (*action)(int argument), int argument) {
  request.action.store(action);
  request.argument.store(argument);
  struct sigaction before;
  struct sigaction during{};
  during.sa_sigaction = handle;
  during.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&during.sa_mask);
  if (::sigaction(kSignal, &during, &before) != 0)
    return std::unexpected(base::errnoError(errno, "Handling a signal"));
  const Status others = callOnOthers();
  request.thread.store(0);
  // A thread that did not react would end the process when it takes the signal later.
  if (others || before.sa_handler != SIG_DFL) ::sigaction(kSignal, &before, nullptr);
  HEARTH_TRY(others);
  if (const int error = action(argument); error != 0)
    return std::unexpected(base::errnoError(error, "Restricting this thread"));
  return {};
}

}  // namespace hearth::ipc
