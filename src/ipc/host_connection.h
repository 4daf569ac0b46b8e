// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <utility>

#include "base/descriptor.h"

namespace hearth::ipc {

// A connection to a host that has not been greeted.
struct HostConnection {
  HostConnection(base::Descriptor connected, pid_t ofHost = 0)
      : socket(std::move(connected)), group(ofHost) {}

  base::Descriptor socket;
  // The process group that was made for the host, which this process may end then; 0: none, the
  // host belongs to others.
  pid_t group;
};

}  // namespace hearth::ipc
