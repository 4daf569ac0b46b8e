// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/deadline.h"
#include "base/result.h"
#include "ipc/mailbox_end.h"
#include "ipc/mailbox_page.h"

namespace hearth::ipc {

// The end of a mailbox that answers. One thread at a time receives and answers; close() is
// thread-safe. A client that writes to the page what it likes gets its own requests wrong, or makes
// some up, as it could anyway: the words of a request are a copy, to be checked like any bytes of a
// stranger. It makes a waiting thread run now and then, at most a thousand times a second.
class MailboxServer {
 public:
  // Between requests.
  static constexpr MailboxEnd::Naps kNaps{std::chrono::milliseconds(125),
                                          std::chrono::milliseconds(1000)};

  // `page` is used for one client only.
  explicit MailboxServer(MailboxPage page, PeerCheck isClientAlive = {},
                         EndForecast forecast = EndForecast());
  // Closes it.
  ~MailboxServer();
  MailboxServer(const MailboxServer&) = delete;
  MailboxServer& operator=(const MailboxServer&) = delete;

  // Waits for the next request. Errors: kMissedDeadlineTransient, after which the caller may wait
  // again; kDeadObject when the mailbox is or gets closed at either end, or the client is dead.
  Result<MailboxWords> receive(base::Deadline deadline = {});

  // Answers the request that was received last. `mayWaitAwake`: a processor is left for the client.
  void answer(const MailboxWords& words, bool mayWaitAwake = false) {
    end_.ring(sequence_, words, mayWaitAwake);
  }

  // Tells the client that the answer to the request that was received last comes soon.
  void announce() { end_.announce(sequence_); }

  // Leaves the processor that the client ran on when it rang.
  void leaveClient();

  // Ends the wait for a request, and all later ones. For whoever sees the connection end.
  void close() { end_.close(); }

  const MailboxEnd& end() const { return end_; }

 private:
  MailboxPage page_;
  MailboxEnd end_;
  uint32_t sequence_ = 0;  // of the last request
};

}  // namespace hearth::ipc
