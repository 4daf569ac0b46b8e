// SPDX-License-Identifier: Apache-2.0
// Where the host of a device comes from.
#pragma once

#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "ipc/host_connection.h"

namespace hearth::ipc {

// The descriptor under which a spawned host finds its client.
inline constexpr int kHostDescriptor = 3;

// A program that is started as `PROGRAM serve --fd 3 --detach ARGUMENTS...`. It goes on in a
// process that is not its starter's child, so that the starter's wait() does not see it, and ends
// when the connection ends.
struct HostProgram {
  std::string program;  // a path
  std::vector<std::string> arguments;
  // Variables besides those of Hearth (base/env.h), as NAME=VALUE. A host gets no others.
  std::vector<std::string> variables;
  // Files that make it another host when they change, besides the program.
  std::vector<std::string> identity = {};
};

// Starts a host and returns the connection to it. Of the caller's descriptors it gets only standard
// error. Errors: kNotFound, kIo.
Result<HostConnection> spawnHost(const HostProgram& program);

// Starts a host that serves all who connect to `listening`, a socket at which it finds them, and
// whose standard error is `errors`, or nothing where that is not valid. Returns the process that is
// to be waited for with waitForDetaching(). Errors as spawnHost().
Result<pid_t> startHost(const HostProgram& program, const base::Descriptor& listening,
                        const base::Descriptor& errors);

// Waits until a host that was started has handed on to the process that stays, so that nobody
// else's wait() finds it.
void waitForDetaching(pid_t process);

// The variables that startHost() gives to a host.
std::vector<std::string> sharedVariables(const HostProgram& program);

// A handle (pidfd) of a process, if it is of this group; else, or where the kernel has none, a
// descriptor that is not valid.
base::Descriptor processOfGroup(pid_t process, pid_t group);

// Kills a process, and waits until none of its threads is left.
void endProcess(const base::Descriptor& handle);

// Connects to the host that listens on a socket. Errors: kNotFound when there is none, kBadData for
// a path that is too long, kIo.
Result<base::Descriptor> joinHost(const std::string& path);

// The command `hearth` that belongs to this library: beside it, or in the folder of programs next
// to it. kNotFound lists where it was looked for.
Result<std::string> findHostProgram();

}  // namespace hearth::ipc
