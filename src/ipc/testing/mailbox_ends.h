// SPDX-License-Identifier: Apache-2.0
// For tests of mailboxes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "ipc/mailbox_client.h"
#include "ipc/mailbox_server.h"

namespace hearth::ipc {

inline base::Deadline afterMilliseconds(uint64_t count) {
  return base::Deadline::after(count * 1'000'000);
}

// The same page once more, as another process has it.
inline MailboxPage mappedAgain(const MailboxPage& page) {
  return MailboxPage::open(base::Descriptor(::fcntl(page.fd(), F_DUPFD_CLOEXEC, 0))).value();
}

inline MailboxWords wordsOf(uint64_t value) {
  return {value, value + 1, value + 2, value + 3};
}

inline MailboxWords answerTo(const MailboxWords& request) {
  return {request[0] * 2, request[1] * 2, request[2] * 2, request[3] * 2};
}

// Answers until the mailbox ends; returns how many requests there were.
inline int serve(MailboxServer& server) {
  int count = 0;
  while (const Result<MailboxWords> request = server.receive()) {
    server.answer(answerTo(*request));
    ++count;
  }
  return count;
}

// How many of `count` calls give the right answer.
inline int callOften(MailboxClient& client, int count) {
  int right = 0;
  for (int i = 0; i < count; ++i) {
    const MailboxWords request = wordsOf(static_cast<uint64_t>(i) << 32);
    const Result<MailboxWords> answer = client.call(request);
    if (answer && *answer == answerTo(request)) ++right;
  }
  return right;
}

class MailboxTest : public testing::Test {
 protected:
  MailboxPage page_ = MailboxPage::create().value();
  MailboxServer server_{mappedAgain(page_)};
  MailboxClient client_{mappedAgain(page_)};
};

// The processors that this thread may use.
inline std::vector<int> processors() {
  cpu_set_t set;
  std::vector<int> found;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return found;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) found.push_back(i);
  return found;
}

inline void bindTo(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  EXPECT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
}

}  // namespace hearth::ipc
