// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ipc/mailbox_page.h"
#include "ipc/mailbox_server.h"
#include "ipc/served_execution.h"

namespace hearth::ipc {

// The host's end of an execution's mailbox: computes each time that the client rings. close() is
// thread-safe.
class ServedMailbox {
 public:
  ServedMailbox(MailboxPage page, std::shared_ptr<ServedExecution> execution)
      : server_(std::move(page)), execution_(std::move(execution)) {}

  // Answers requests on the calling thread until the mailbox is closed at either end.
  void serve();

  // Makes serve() return, once it has computed what it is at.
  void close() { server_.close(); }

 private:
  MailboxServer server_;
  const std::shared_ptr<ServedExecution> execution_;
};

}  // namespace hearth::ipc
