// SPDX-License-Identifier: Apache-2.0
#include "base/helper_thread.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "base/processor.h"
#include "base/signals.h"

namespace hearth::base {

std::thread startHelperThread(const char* name, std::function<void()> run) {
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
    sendAway(thread.native_handle());
  } catch (const std::system_error&) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace hearth::base
