// SPDX-License-Identifier: Apache-2.0
// Hosts that all programs of a user share, and which the first of them starts.
#pragma once

#include <string>

#include "base/result.h"
#include "ipc/host_connection.h"
#include "ipc/host_process.h"

namespace hearth::ipc {

// The folder in which the hosts of this user listen: `hearth` in XDG_RUNTIME_DIR. Makes it if it is
// not there. Errors: kNotFound without the variable; kBadData where one of the two is not this
// user's, or others may enter it; kIo.
Result<std::string> userHostFolder();

// The socket of the host that serves `device` in that folder. Its name tells programs, manifests
// and libraries that differ, and other variables, from each other, so that what listens there is
// what startUserHost() would start.
std::string userHostSocket(const std::string& folder, const std::string& device,
                           const HostProgram& program);

// Connects to the host that listens at `socket`, or starts one there, as
// `PROGRAM serve --fd 3 --detach --idle-exit 60 ARGUMENTS...`, which ends when it has had no client
// for a minute. What it logs goes to the file beside the socket whose name ends in `.log`. Of
// several programs that call this at once one starts the host, and all are connected to it. Errors:
// kNotFound, kIo; kBadData for a path that is too long, or a host of another user.
Result<HostConnection> joinUserHost(const std::string& socket, const HostProgram& program);

// Leaves a host that does not answer to itself: the next joinUserHost() starts another one.
void forgetUserHost(const std::string& socket);

}  // namespace hearth::ipc
