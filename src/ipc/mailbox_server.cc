// SPDX-License-Identifier: Apache-2.0
#include "ipc/mailbox_server.h"

#include <utility>

#include "base/processor.h"

namespace hearth::ipc {

MailboxServer::MailboxServer(MailboxPage page, PeerCheck isClientAlive, EndForecast forecast)
    : page_(std::move(page)),
      end_(page_.server(), page_.client(), std::move(isClientAlive), kNaps, std::move(forecast)) {}

MailboxServer::~MailboxServer() {
  close();
}

Result<MailboxWords> MailboxServer::receive(base::Deadline deadline) {
  HEARTH_ASSIGN(const MailboxEnd::Arrival request,
                end_.await({.number = sequence_, .isEqual = false}, deadline));
  sequence_ = request.sequence;
  return request.words;
}

void MailboxServer::leaveClient() {
  if (!end_.isPeerElsewhere()) base::leaveProcessor(base::currentProcessor());
}

}  // namespace hearth::ipc
