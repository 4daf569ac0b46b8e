// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace hearth::base {

// The signals that threads unknown to the program block, so that its signal handlers do not run
// there: all but those of a thread's own faults. If these were blocked, the kernel would end the
// process without calling a handler.
inline sigset_t signalsOfOthers() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
    sigdelset(&signals, fault);
  return signals;
}

}  // namespace hearth::base
