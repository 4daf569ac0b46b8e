// SPDX-License-Identifier: Apache-2.0
#include "base/helper_thread.h"

#include <pthread.h>
#include <sched.h>

#include <system_error>
#include <utility>

#include "base/processor.h"
#include "base/signals.h"

namespace hearth::base {

namespace {

std::thread start(const char* name, std::function<void()> run, void (*place)(pthread_t)) {
  const sigset_t others = signalsOfOthers();
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, &others, &before);
  std::thread thread;
  // std::thread reports a lack of threads by exception only.
  try {
    thread = std::thread([name, run = std::move(run)] {
      ::pthread_setname_np(::pthread_self(), name);
      run();
    });
    place(thread.native_handle());
  } catch (const std::system_error&) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

// A new thread mostly waits for its maker's processor, so that this comes before its first turn.
void makeIdle(pthread_t thread) {
  const sched_param parameter{};
  ::pthread_setschedparam(thread, SCHED_IDLE, &parameter);
}

}  // namespace

std::thread startHelperThread(const char* name, std::function<void()> run) {
  return start(name, std::move(run), sendAway);
}

std::thread startIdleThread(const char* name, std::function<void()> run) {
  const auto runIdle = [run = std::move(run)] {
    makeIdle(::pthread_self());
    run();
  };
  return start(name, runIdle, makeIdle);
}

}  // namespace hearth::base
