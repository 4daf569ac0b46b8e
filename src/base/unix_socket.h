// SPDX-License-Identifier: Apache-2.0
// Sockets that have a path in the file system.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <string>

#include "base/descriptor.h"
#include "base/result.h"

namespace hearth::base {

// Fills `address` with a path and returns the size of the address in bytes. Error: kBadData when
// the path is empty, has a NUL, or is longer than the kernel takes (107 bytes).
Result<socklen_t> socketAddress(const std::string& path, sockaddr_un* address);

// How a socket is made. `type` is SOCK_STREAM or SOCK_SEQPACKET, with SOCK_NONBLOCK if wanted;
// `mode` are the permissions of the path, of which the process' umask is taken.
struct UnixSocket {
  int type = SOCK_STREAM;
  int backlog = SOMAXCONN;
  mode_t mode = 0777;
};

// Makes a socket that listens at `path`. The path appears once the socket listens, so whoever sees
// it can connect. A socket that is there and on which nobody listens is replaced; of several
// processes that do so at once, one wins. The file is the caller's to remove. Errors: kBadState
// when somebody listens there; kBadData as for socketAddress(), or if `path` is no socket; kIo. May
// be called by several threads and processes.
Result<Descriptor> listenAt(const std::string& path, const UnixSocket& kind);

}  // namespace hearth::base
