// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace hearth::base {

// What threads that the program does not know block, so that its signal handlers do not run there:
// all signals but those of a thread's own faults, whose handlers would not be called then (the
// kernel ends the process instead).
inline sigset_t signalsOfOthers() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
    sigdelset(&signals, fault);
  return signals;
}

}  // namespace hearth::base
