// SPDX-License-Identifier: Apache-2.0
#include "ipc/mailbox_client.h"

#include <utility>

namespace hearth::ipc {

MailboxClient::MailboxClient(MailboxPage page, PeerCheck isHostAlive, EndForecast forecast)
    : page_(std::move(page)),
      end_(page_.client(), page_.server(), std::move(isHostAlive), kNaps, std::move(forecast)) {}

MailboxClient::~MailboxClient() {
  if (!isLeft_) close();
}

bool MailboxClient::wasReceived() const {
  return hasRung_ && page_.server().received.load(std::memory_order_relaxed) == sequence_;
}

Result<MailboxWords> MailboxClient::call(const MailboxWords& request, base::Deadline deadline) {
  return ask(request, [&](MailboxEnd::Awaited awaited) { return end_.await(awaited, deadline); });
}

Result<MailboxWords> MailboxClient::call(const MailboxWords& request, Patience& patience) {
  return ask(request, [&](MailboxEnd::Awaited awaited) {
    while (true) {
      auto arrival = end_.await(awaited, patience);
      const bool isLate = !arrival && arrival.error().code() == ErrorCode::kMissedDeadlineTransient;
      if (!isLate || patience.hasRunOut()) return arrival;
    }
  });
}

template <typename Await>
Result<MailboxWords> MailboxClient::ask(const MailboxWords& request, Await await) {
  hasRung_ = false;
  if (isBusy_) {
    HEARTH_TRY(await({.number = sequence_, .isEqual = true}));
    isBusy_ = false;
  }
  end_.ring(++sequence_, request);
  hasRung_ = true;
  isBusy_ = true;
  HEARTH_ASSIGN(const MailboxEnd::Arrival answer, await({.number = sequence_, .isEqual = true}));
  isBusy_ = false;
  return answer.words;
}

}  // namespace hearth::ipc
