// SPDX-License-Identifier: Apache-2.0
#include "ipc/execution_mailbox.h"

#include <utility>

#include "base/fork_gate.h"
#include "ipc/decoding.h"
#include "ipc/execution_words.h"

namespace hearth::ipc {

ExecutionMailbox::ExecutionMailbox(std::shared_ptr<Session> session, uint64_t execution,
                                   MailboxPage page)
    : session_(std::move(session)),
      execution_(execution),
      generation_(base::ForkGate::generation()),
      client_(std::move(page), [session = session_.get()] { return session->isHostThere(); }) {}

ExecutionMailbox::~ExecutionMailbox() {
  if (generation_ != base::ForkGate::generation()) client_.leaveToParent();
}

Result<std::unique_ptr<ExecutionMailbox>> ExecutionMailbox::open(std::shared_ptr<Session> session,
                                                                 uint64_t execution) {
  HEARTH_ASSIGN(MailboxPage page, MailboxPage::create());
  Outgoing outgoing;
  auto request = outgoing.request.initOpenMailbox();
  request.setExecution(execution);
  request.setDescriptor(outgoing.attachments.add(page.fd()));
  HEARTH_ASSIGN(const Frame reply, session->call(outgoing));
  HEARTH_TRY(readReply(reply, schema::Reply::DONE, [](auto) { return Status(); }));
  return std::unique_ptr<ExecutionMailbox>(
      new ExecutionMailbox(std::move(session), execution, std::move(page)));
}

Result<hal::ExecutionResult> ExecutionMailbox::compute(const base::Deadline& deadline,
                                                       hal::OutputShapes* shapes, bool* isBegun,
                                                       Patience patience) {
  // The host keeps to the deadline. A client that went on then would share the arguments with a
  // computation that goes on, too.
  const auto words = client_.call(requestWords(deadline), patience);
  *isBegun = words || client_.wasReceived();
  if (!words) return std::unexpected(words.error());
  const ExecutionAnswer answer = ExecutionAnswer::of(*words);
  if (answer.isPlain) {
    hal::ExecutionResult result;
    result.outputShapes = *shapes;
    result.timing = answer.timing;
    result.copiedBytes = answer.copiedBytes;
    return result;
  }
  Outgoing outgoing;
  outgoing.request.setFetchResult(execution_);
  HEARTH_ASSIGN(const Frame reply, session_->call(outgoing, patience));
  HEARTH_ASSIGN(
      hal::ExecutionResult result,
      readReply(reply, schema::Reply::RESULT, [](auto from) -> Result<hal::ExecutionResult> {
        return readResult(from.getResult());
      }));
  if (result.status) *shapes = result.outputShapes;
  return result;
}

}  // namespace hearth::ipc
