// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/deadline.h"
#include "base/result.h"
#include "ipc/end_forecast.h"
#include "ipc/mailbox_end.h"
#include "ipc/mailbox_page.h"
#include "ipc/patience.h"

namespace hearth::ipc {

// The end of a mailbox that asks: one request at a time, each with an answer. One thread at a time
// calls; close() is thread-safe. A host that writes to the page what it likes can make calls fail,
// wait until their deadline or return any words, and nothing else.
class MailboxClient {
 public:
  // While a request is computed. A host that dies is noticed before as much time again has passed.
  static constexpr MailboxEnd::Naps kNaps{std::chrono::milliseconds(2),
                                          std::chrono::milliseconds(32)};

  // `page` is new, or one that a host has made for this client alone.
  explicit MailboxClient(MailboxPage page, PeerCheck isHostAlive = {},
                         EndForecast forecast = EndForecast());
  // Closes it.
  ~MailboxClient();
  MailboxClient(const MailboxClient&) = delete;
  MailboxClient& operator=(const MailboxClient&) = delete;

  // Sends a request and waits for its answer. When an earlier call has missed its deadline, waits
  // for the answer to that one first, so that a host never has two requests. Errors:
  // kMissedDeadlineTransient; kDeadObject when the mailbox is or gets closed at either end, or the
  // host is dead.
  Result<MailboxWords> call(const MailboxWords& request, base::Deadline deadline = {});
  // The same as long as `patience` lasts, which the caller has for this one call.
  Result<MailboxWords> call(const MailboxWords& request, Patience& patience);

  // Whether the host may still compute a request whose call has missed its deadline, and so read
  // and write the memory that belongs to it.
  bool isBusy() const { return isBusy_; }

  // Whether the host has taken the request of the last call. Where it has not, and is dead, nothing
  // of the request was begun.
  bool wasReceived() const;

  // For a forked child, which must not write to its parent's mailbox: closes nothing.
  void leaveToParent() { isLeft_ = true; }

  // Ends the call that waits, and all later ones. For whoever sees the connection end.
  void close() { end_.close(); }

  const MailboxEnd& end() const { return end_; }

 private:
  // Rings and waits for answers with `await`, which takes what is awaited.
  template <typename Await>
  Result<MailboxWords> ask(const MailboxWords& request, Await await);

  MailboxPage page_;
  MailboxEnd end_;
  uint32_t sequence_ = 0;  // of the last request
  bool hasRung_ = false;   // in the last call
  bool isBusy_ = false;
  bool isLeft_ = false;
};

}  // namespace hearth::ipc
