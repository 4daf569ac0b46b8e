// SPDX-License-Identifier: Apache-2.0
#include "ipc/served_mailbox.h"

#include "ipc/execution_words.h"

namespace hearth::ipc {

void ServedMailbox::serve() {
  while (true) {
    const auto request = server_.receive();
    if (!request) return;
    server_.answer(execution_->computeInMailbox(deadlineOf(*request)).words());
  }
}

}  // namespace hearth::ipc
