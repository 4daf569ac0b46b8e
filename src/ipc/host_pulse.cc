// SPDX-License-Identifier: Apache-2.0
#include "ipc/host_pulse.h"

#include <sys/socket.h>

#include <mutex>

#include "ipc/pulse.h"

namespace hearth::ipc {

HostPulse::Beat HostPulse::look() {
  const std::lock_guard lock(mutex_);
  PulseAnswer answer;
  // At most one question is open, so more answers than one are not read in a row for long.
  for (int i = 0; i < 2; ++i) {
    if (::recv(socket_.get(), &answer, sizeof answer, MSG_DONTWAIT) != sizeof answer) break;
    if (answer.number != asked_) continue;
    isOpen_ = false;
    steps_ = answer.steps;
  }
  const Clock::time_point now = Clock::now();
  if (!isOpen_) {
    const PulseQuestion question{++asked_};
    // A question that cannot be sent counts as one that is not answered: the host takes none.
    static_cast<void>(
        ::send(socket_.get(), &question, sizeof question, MSG_DONTWAIT | MSG_NOSIGNAL));
    isOpen_ = true;
    askedAt_ = now;
    return {.silence = {}, .steps = steps_};
  }
  return {.silence = now - askedAt_, .steps = steps_};
}

}  // namespace hearth::ipc
