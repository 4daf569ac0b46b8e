// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace hearth::ipc {

// Calls `action(argument)` on every thread of the process, the calling one last, for what the
// kernel changes for one thread only. Threads that they start meanwhile come from one that has it
// behind it, or are found. `action` must be safe in a signal handler; it returns 0 or an error
// number. The other threads run it in a handler of SIGSYS, which helper threads do not block, and
// may see a call interrupted. One call at a time. Errors: what `action` returned; kBadState when a
// thread does not react for some seconds; kIo when the threads cannot be listed. Some threads may
// have called it then.
Status onEveryThread(int (*action)(int argument), int argument);

}  // namespace hearth::ipc
