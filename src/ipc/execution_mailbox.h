// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "hal/device.h"
#include "ipc/mailbox_client.h"
#include "ipc/patience.h"
#include "ipc/session.h"

namespace hearth::ipc {

// The client's end of an execution's mailbox: computes by ringing, without messages as long as the
// output shapes stay the same. One call at a time. In a forked child it may only be destroyed.
class ExecutionMailbox {
 public:
  // Opens a mailbox for an execution of a session. Errors: those of the host, which bounds how many
  // a client may have; kOutOfMemory, kIo.
  static Result<std::unique_ptr<ExecutionMailbox>> open(std::shared_ptr<Session> session,
                                                        uint64_t execution);
  ~ExecutionMailbox();
  ExecutionMailbox(const ExecutionMailbox&) = delete;
  ExecutionMailbox& operator=(const ExecutionMailbox&) = delete;

  // Computes. `shapes` are those that the host told last, by whatever way, and stay true. Sets
  // `*isBegun` to whether the host may have begun. Errors: kDeadObject when the host is gone,
  // kMissedDeadlineTransient when `patience` has run out, and it may compute on; kBadData
  // when it answers with something else. What the computation gives, an error or not, is in the
  // result.
  Result<hal::ExecutionResult> compute(const base::Deadline& deadline, hal::OutputShapes* shapes,
                                       bool* isBegun, Patience patience = Patience::endless());

 private:
  ExecutionMailbox(std::shared_ptr<Session> session, uint64_t execution, MailboxPage page);

  const std::shared_ptr<Session> session_;
  const uint64_t execution_;
  const uint32_t generation_;
  MailboxClient client_;
};

}  // namespace hearth::ipc
