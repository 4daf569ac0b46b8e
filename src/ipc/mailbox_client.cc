// SPDX-License-Identifier: Apache-2.0
#include "ipc/mailbox_client.h"

#include <utility>

namespace hearth::ipc {

MailboxClient::MailboxClient(MailboxPage page, PeerCheck isHostAlive)
    : page_(std::move(page)), end_(page_.client(), page_.server(), std::move(isHostAlive), kNaps) {}

MailboxClient::~MailboxClient() {
  if (!isLeft_) close();
}

bool MailboxClient::wasReceived() const {
  return hasRung_ && page_.server().received.load(std::memory_order_relaxed) == sequence_;
}

Result<MailboxWords> MailboxClient::call(const MailboxWords& request, base::Deadline deadline) {
  hasRung_ = false;
  if (isBusy_) {
    HEARTH_TRY(end_.await({.number = sequence_, .isEqual = true}, deadline));
    isBusy_ = false;
  }
  end_.ring(++sequence_, request);
  hasRung_ = true;
  isBusy_ = true;
  HEARTH_ASSIGN(const MailboxEnd::Arrival answer,
                end_.await({.number = sequence_, .isEqual = true}, deadline));
  isBusy_ = false;
  return answer.words;
}

}  // namespace hearth::ipc
