// SPDX-License-Identifier: Apache-2.0
// What a client and a host say to each other on the pulse: a connection beside that for messages,
// which the host answers on the thread that waits for its clients, whatever its other threads do.
#pragma once

#include <cstdint>

namespace hearth::ipc {

struct PulseQuestion {
  uint64_t number = 0;
};

struct PulseAnswer {
  uint64_t number = 0;  // of the question
  // Begun steps of all that the host does for this client. It grows as long as that goes on.
  uint64_t steps = 0;
};

}  // namespace hearth::ipc
