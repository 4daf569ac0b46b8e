// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <stdexcept>

#include "base/descriptor.h"

namespace hearth::ipc {

// Two connected sockets as client and host have them.
struct SocketPair {
  SocketPair() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
      throw std::runtime_error("There are no sockets.");
    left.reset(ends[0]);
    right.reset(ends[1]);
  }

  base::Descriptor left;
  base::Descriptor right;
};

}  // namespace hearth::ipc
