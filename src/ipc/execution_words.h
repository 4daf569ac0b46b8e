// SPDX-License-Identifier: Apache-2.0
// What client and host write into the mailbox of an execution.
#pragma once

#include <cstdint>

#include "base/deadline.h"
#include "hal/device.h"
#include "ipc/decoding.h"
#include "ipc/encoding.h"
#include "ipc/mailbox_page.h"

namespace hearth::ipc {

// A request to compute: the deadline, as the schema has it.
inline MailboxWords requestWords(const base::Deadline& deadline) {
  return {static_cast<uint64_t>(encodeDeadline(deadline))};
}
inline base::Deadline deadlineOf(const MailboxWords& request) {
  return decodeDeadline(static_cast<int64_t>(request[0]));
}

// An answer. One that is not plain is fetched with a message (Request.fetchResult).
struct ExecutionAnswer {
  // Whether the computation succeeded, with the output shapes that the client was told last.
  bool isPlain = false;
  hal::Timing timing;
  uint64_t copiedBytes = 0;

  MailboxWords words() const {
    return {isPlain ? uint64_t{1} : uint64_t{0}, timing.onDevice, timing.inDriver, copiedBytes};
  }
  static ExecutionAnswer of(const MailboxWords& words) {
    return {words[0] == 1, {words[1], words[2]}, words[3]};
  }
};

}  // namespace hearth::ipc
