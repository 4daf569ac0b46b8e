// SPDX-License-Identifier: Apache-2.0
// Which system calls a process may still make (seccomp).
#pragma once

#include "base/result.h"

namespace hearth::ipc {

// What a host needs besides what every host needs.
struct CallRules {
  bool acceptsConnections = false;  // on sockets that listen already
  bool loadsCode = false;           // maps memory that can be executed: loads libraries, compiles
  bool controlsDevices = false;     // any ioctl
};

// Lets all threads of the process, now and later, make only the system calls that are listed in
// call_filter.cc, for ever. These are for memory, memory files, threads, time, files and their
// locks, and messages over sockets that exist. No other process can be started, traced, signalled
// or asked for its memory; no socket made, bound or connected; nothing executed or mounted; no
// limit or name space changed, and no owner, mode or attribute of a file. A call that is not
// allowed fails with EPERM, and clone3 with ENOSYS, whereupon the C library calls clone. A call by
// the rules of another architecture, as 32-bit programs make them, ends the process. A thread may
// still change how processes of its user are scheduled. Errors: kUnsupported where the kernel
// filters no calls, kIo.
Status filterCalls(const CallRules& rules);

}  // namespace hearth::ipc
