// SPDX-License-Identifier: Apache-2.0
// When the ends of a mailbox wait awake.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "ipc/mailbox_client.h"
#include "ipc/mailbox_server.h"
#include "ipc/testing/mailbox_ends.h"

namespace hearth::ipc {
namespace {

struct Spins {
  uint64_t ofClient;
  uint64_t ofServer;
};

// Runs calls on one processor with a host on another; returns how many waits of each end spun.
Spins spinsBetween(int first, int second, int calls, std::chrono::milliseconds work) {
  const MailboxPage page = MailboxPage::create().value();
  MailboxServer server(mappedAgain(page));
  MailboxClient client(mappedAgain(page));
  std::thread host([&] {
    bindTo(second);
    while (const Result<MailboxWords> request = server.receive()) {
      if (work.count() > 0) std::this_thread::sleep_for(work);
      server.answer(answerTo(*request));
    }
  });
  std::thread caller([&] {
    bindTo(first);
    EXPECT_EQ(callOften(client, calls), calls);
    client.close();
  });
  caller.join();
  host.join();
  return {client.end().spins(), server.end().spins()};
}

TEST(Mailbox, NobodySpinsOnOneProcessor) {
  const int processor = processors().front();
  const Spins spins = spinsBetween(processor, processor, 300, {});
  EXPECT_EQ(spins.ofClient, 0u);
  EXPECT_EQ(spins.ofServer, 0u);
}

TEST(Mailbox, SpinsBetweenTwoProcessors) {
  const std::vector<int> all = processors();
  if (all.size() < 2) GTEST_SKIP() << "There is one processor only.";
  const Spins spins = spinsBetween(all[0], all[1], 300, {});
  EXPECT_GT(spins.ofClient + spins.ofServer, 0u);
}

TEST(Mailbox, SpinsNoLongerWhenTheAnswerTakesLong) {
  const std::vector<int> all = processors();
  if (all.size() < 2) GTEST_SKIP() << "There is one processor only.";
  // The first five. More when the client got no processor meanwhile, so that its waits were short;
  // on a busy machine that may happen often, so the best of some attempts counts.
  uint64_t fewest = UINT64_MAX;
  for (int attempt = 0; attempt < 10 && fewest > 10; ++attempt) {
    const Spins spins = spinsBetween(all[0], all[1], 40, std::chrono::milliseconds(4));
    fewest = std::min(fewest, spins.ofClient);
  }
  EXPECT_LE(fewest, 10u);
}

// Runs calls of a client that computes for `pause` between them, of a host that computes for `work`
// each time; returns how many waits of the host slept. `isLeft`: a processor is left for it.
uint64_t sleepsOfHostBetween(int first, int second, std::chrono::microseconds work,
                             std::chrono::microseconds pause, bool isLeft) {
  const auto computeFor = [](std::chrono::microseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) continue;
  };
  const MailboxPage page = MailboxPage::create().value();
  MailboxServer server(mappedAgain(page), {}, EndForecast([isLeft] { return isLeft; }));
  MailboxClient client(mappedAgain(page));
  std::thread host([&] {
    bindTo(second);
    while (const Result<MailboxWords> request = server.receive()) {
      computeFor(work);
      server.answer(answerTo(*request));
    }
  });
  std::thread caller([&] {
    bindTo(first);
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(callOften(client, 1), 1);
      computeFor(pause);
    }
    client.close();
  });
  caller.join();
  host.join();
  return server.end().sleeps();
}

TEST(Mailbox, AHostThatComputesForLongWaitsAwakeForTheNextRequest) {
  const std::vector<int> all = processors();
  if (all.size() < 2) GTEST_SKIP() << "There is one processor only.";
  using std::chrono::microseconds;
  // As a client that has to wake asks again.
  constexpr microseconds kPause(95);
  // On a busy machine many waits are longer, or shorter as the host is late: the best of some
  // attempts counts.
  uint64_t fewest = UINT64_MAX;
  for (int attempt = 0; attempt < 500 && fewest > 6; ++attempt)
    fewest =
        std::min(fewest, sleepsOfHostBetween(all[0], all[1], microseconds(3000), kPause, true));
  EXPECT_LE(fewest, 6u);
  uint64_t most = 0;
  for (int attempt = 0; attempt < 500 && most < 8; ++attempt)
    most = std::max(most, sleepsOfHostBetween(all[0], all[1], microseconds(3000), kPause, false));
  EXPECT_GE(most, 8u);
}

// A client that calls until it has heard an announcement, but so often at most, of a host that
// announces each answer as soon as the client sleeps; returns how many the client has heard.
uint64_t announcementsBetween(int first, int second, int calls) {
  const MailboxPage page = MailboxPage::create().value();
  MailboxServer server(mappedAgain(page));
  MailboxClient client(mappedAgain(page));
  std::thread host([&] {
    bindTo(second);
    while (const Result<MailboxWords> request = server.receive()) {
      while (page.client().isSleeping == 0) std::this_thread::yield();
      server.announce();
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      server.answer(answerTo(*request));
    }
  });
  std::thread caller([&] {
    bindTo(first);
    for (int i = 0; i < calls && client.end().announced() == 0; ++i)
      EXPECT_EQ(callOften(client, 1), 1);
    client.close();
  });
  caller.join();
  host.join();
  return client.end().announced();
}

TEST(Mailbox, HearsAnnouncementsOnAnotherProcessor) {
  const std::vector<int> all = processors();
  if (all.size() < 2) GTEST_SKIP() << "There is one processor only.";
  EXPECT_EQ(announcementsBetween(all[0], all[1], 3000), 1u);
}

TEST(Mailbox, NobodyAnnouncesOnOneProcessor) {
  const int processor = processors().front();
  EXPECT_EQ(announcementsBetween(processor, processor, 30), 0u);
}

// A client that calls until it has waited for an expected end, but so often at most, of a host that
// answers each call after the same time; returns how many ends the client has expected. With
// `isSilent`, the host does not answer any more then.
uint64_t expectationsBetween(int first, int second, int calls, std::chrono::microseconds time,
                             bool mayWaitAwake, bool isSilent = false) {
  const MailboxPage page = MailboxPage::create().value();
  MailboxServer server(mappedAgain(page));
  MailboxClient client(mappedAgain(page), {}, EndForecast([] {
                         return true;  // whatever else the machine does
                       }));
  std::atomic<bool> answers = true;
  std::thread host([&] {
    bindTo(second);
    while (const Result<MailboxWords> request = server.receive()) {
      const auto end = std::chrono::steady_clock::now() + time;
      while (std::chrono::steady_clock::now() < end) continue;
      if (answers) server.answer(answerTo(*request), mayWaitAwake);
    }
  });
  std::thread caller([&] {
    bindTo(first);
    for (int i = 0; i < calls && client.end().expected() == 0; ++i)
      EXPECT_EQ(callOften(client, 1), 1);
    answers = !isSilent;
    if (isSilent) {
      const Result<MailboxWords> late = client.call(wordsOf(1), afterMilliseconds(100));
      EXPECT_FALSE(late);
      if (!late) {
        EXPECT_EQ(late.error().code(), ErrorCode::kMissedDeadlineTransient);
      }
    }
    client.close();
  });
  caller.join();
  host.join();
  return client.end().expected();
}

TEST(Mailbox, WaitsAwakeForTheEndsOfWaitsThatTakeTheSameTime) {
  const std::vector<int> all = processors();
  if (all.size() < 2) GTEST_SKIP() << "There is one processor only.";
  for (const int time : {100, 400})
    EXPECT_EQ(expectationsBetween(all[0], all[1], 3000, std::chrono::microseconds(time), true), 1u)
        << time;
}

TEST(Mailbox, AnEndThatDoesNotComeIsAwaitedAwakeOnce) {
  const std::vector<int> all = processors();
  if (all.size() < 2) GTEST_SKIP() << "There is one processor only.";
  constexpr std::chrono::microseconds kTime(400);
  EXPECT_LE(expectationsBetween(all[0], all[1], 3000, kTime, true, true), 2u);
}

TEST(Mailbox, NoEndIsAwaitedAwakeWhereNoProcessorIsLeft) {
  const std::vector<int> all = processors();
  constexpr std::chrono::microseconds kTime(100);
  EXPECT_EQ(expectationsBetween(all[0], all[0], 100, kTime, true), 0u);
  if (all.size() < 2) GTEST_SKIP() << "There is one processor only.";
  EXPECT_EQ(expectationsBetween(all[0], all[1], 100, kTime, false), 0u);
}

// Times that a host makes up: before the request, and in the future.
TEST_F(MailboxTest, FalseTimesOfAnswersAreNotBelieved) {
  const auto nanoseconds = [] {
    return static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  };
  const uint64_t begin = nanoseconds();
  std::thread host([&] {
    MailboxSide& own = page_.server();
    for (uint64_t i = 0; const Result<MailboxWords> request = server_.receive(); ++i) {
      const MailboxWords answer = answerTo(*request);
      for (size_t word = 0; word < answer.size(); ++word) own.words[word] = answer[word];
      own.processor = 1 << 20;
      own.rungAt = std::array{UINT64_MAX, uint64_t{1}, begin, 2 * nanoseconds()}[i % 4];
      own.sequence = page_.client().sequence.load();
      ::syscall(SYS_futex, &own.sequence, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
  });
  EXPECT_EQ(callOften(client_, 100), 100);
  client_.close();
  host.join();
  EXPECT_EQ(client_.end().expected(), 0u);
}

TEST_F(MailboxTest, AHostLeavesTheProcessorOfItsClient) {
  if (processors().size() < 2) GTEST_SKIP() << "There is one processor only.";
  // The kernel may bring it back at any moment.
  bool hasLeft = false;
  for (int attempt = 0; attempt < 1000 && !hasLeft; ++attempt) {
    const int processor = ::sched_getcpu();
    page_.client().processor = static_cast<uint32_t>(processor + 1);
    server_.leaveClient();
    hasLeft = ::sched_getcpu() != processor;
  }
  EXPECT_TRUE(hasLeft);
}

// Where the answer does not come, an announcement is heard once.
TEST_F(MailboxTest, AFalseAnnouncementIsHeardOnce) {
  page_.server().processor = 1 << 20;
  page_.server().announced = 1;
  const Result<MailboxWords> answer = client_.call(wordsOf(1), afterMilliseconds(300));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kMissedDeadlineTransient);
  EXPECT_EQ(client_.end().announced(), 1u);
}

TEST_F(MailboxTest, AnAnnouncementOfAnotherAnswerIsNotHeard) {
  page_.server().processor = 1 << 20;
  page_.server().announced = 2;
  ASSERT_FALSE(client_.call(wordsOf(1), afterMilliseconds(10)));
  EXPECT_EQ(client_.end().announced(), 0u);
}

}  // namespace
}  // namespace hearth::ipc
