// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "hal/progress.h"
#include "ipc/early_bell.h"
#include "ipc/mailbox_page.h"
#include "ipc/mailbox_server.h"
#include "ipc/served_execution.h"

namespace hearth::ipc {

// The host's end of an execution's mailbox: computes each time that the client rings. Tells the
// client when the answer is near, and when answers were given, if a processor is left on which it
// can wait for them awake. close() is thread-safe.
class ServedMailbox final : private hal::Progress {
 public:
  // `computing` counts the threads that compute for any mailbox of this host. `told` is told of the
  // progress of each computation, too. Both outlive this object.
  ServedMailbox(MailboxPage page, std::shared_ptr<ServedExecution> execution,
                std::atomic<uint32_t>& computing, hal::Progress& told)
      : server_(std::move(page)),
        execution_(std::move(execution)),
        computing_(computing),
        told_(told) {}

  // Answers requests on the calling thread until the mailbox is closed at either end.
  void serve();

  // Makes serve() return, once it has computed what it is at.
  void close() { server_.close(); }

 private:
  void begins(size_t step, size_t steps) override;
  // Whether there is a processor on which the client can wait awake.
  bool hasProcessor() const;

  MailboxServer server_;
  const std::shared_ptr<ServedExecution> execution_;
  std::atomic<uint32_t>& computing_;
  hal::Progress& told_;
  EarlyBell bell_;
  uint32_t processors_ = 0;  // that this host may use
};

}  // namespace hearth::ipc
