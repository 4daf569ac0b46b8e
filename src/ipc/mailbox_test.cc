// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ipc/mailbox_client.h"
#include "ipc/mailbox_server.h"
#include "ipc/testing/mailbox_ends.h"

namespace hearth::ipc {
namespace {

TEST(MailboxPage, IsMemoryThatKeepsItsSize) {
  const MailboxPage page = MailboxPage::create().value();
  EXPECT_EQ(base::Descriptor(::dup(page.fd())).size().value(), MailboxPage::kSize);
  EXPECT_NE(::ftruncate(page.fd(), 0), 0);
  EXPECT_NE(::ftruncate(page.fd(), 2 * MailboxPage::kSize), 0);
  EXPECT_NE(::fcntl(page.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_NE(::fcntl(page.fd(), F_GETFD) & FD_CLOEXEC, 0);
  MailboxPage other = mappedAgain(page);
  page.client().sequence = 7;
  EXPECT_EQ(other.client().sequence, 7u);
  const MailboxPage moved = std::move(other);
  EXPECT_EQ(moved.client().sequence, 7u);
}

TEST(MailboxPage, TakesNoDescriptorThatCouldLoseItsBytes) {
  const auto errorOf = [](int fd) {
    const Result<MailboxPage> page = MailboxPage::open(base::Descriptor(fd));
    return page ? std::string() : page.error().message();
  };
  const auto memory = [](off_t size, int seals) {
    const int fd = ::memfd_create("mailbox-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_EQ(::ftruncate(fd, size), 0);
    EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
  };
  const std::string unsealed = "The descriptor of a mailbox is no memory that keeps its size.";
  EXPECT_EQ(errorOf(-1), unsealed);
  EXPECT_EQ(errorOf(::open("/dev/zero", O_RDWR | O_CLOEXEC)), unsealed);
  EXPECT_EQ(errorOf(memory(4096, 0)), unsealed);
  EXPECT_EQ(errorOf(memory(4096, F_SEAL_GROW | F_SEAL_SEAL)), unsealed);
  EXPECT_EQ(errorOf(memory(0, F_SEAL_SHRINK)),
            "The memory of a mailbox has 0 bytes in place of 4096.");
  EXPECT_EQ(errorOf(memory(8192, F_SEAL_SHRINK)),
            "The memory of a mailbox has 8192 bytes in place of 4096.");
  EXPECT_NE(errorOf(memory(4096, F_SEAL_SHRINK | F_SEAL_WRITE)), "");
  EXPECT_EQ(errorOf(memory(4096, F_SEAL_SHRINK)), "");
}

TEST_F(MailboxTest, EachRequestGetsItsAnswer) {
  int served = 0;
  std::thread host([&] { served = serve(server_); });
  EXPECT_EQ(callOften(client_, 1000), 1000);
  client_.close();
  host.join();
  EXPECT_EQ(served, 1000);
}

// Forks a process that uses a mapping of its own of the page until it exits or is killed.
template <typename Use>
pid_t startUser(const MailboxPage& page, Use use) {
  const pid_t user = ::fork();
  EXPECT_GE(user, 0);
  if (user != 0) return user;
  use(mappedAgain(page));
  for (;;) ::pause();
}

// Each end in a process of its own, over a descriptor of the page.
TEST(Mailbox, JoinsTwoProcesses) {
  const MailboxPage page = MailboxPage::create().value();
  const pid_t host = startUser(page, [](MailboxPage own) {
    auto server = std::make_unique<MailboxServer>(std::move(own));
    const int served = serve(*server);
    server.reset();
    ::_exit(served == 500 ? 0 : 1);
  });
  int right = 0;
  {
    MailboxClient client(mappedAgain(page));
    right = callOften(client, 500);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(host, &status, 0), host);
  EXPECT_EQ(right, 500);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Mailbox, ADeadHostEndsTheCall) {
  const MailboxPage page = MailboxPage::create().value();
  const pid_t host = startUser(page, [](MailboxPage own) {
    MailboxServer server(std::move(own));
    for (int i = 0; i < 3; ++i) {
      const Result<MailboxWords> request = server.receive();
      if (request) server.answer(answerTo(*request));
    }
    static_cast<void>(server.receive());
    ::_exit(0);  // tells nobody
  });
  bool isReaped = false;
  MailboxClient client(mappedAgain(page), [&] {
    isReaped = isReaped || ::waitpid(host, nullptr, WNOHANG) == host;
    return !isReaped;
  });
  EXPECT_EQ(callOften(client, 3), 3);
  const Result<MailboxWords> answer = client.call(wordsOf(1));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kDeadObject);
  EXPECT_TRUE(isReaped);
  EXPECT_TRUE(client.isBusy());
}

TEST(Mailbox, ADeadClientEndsTheWait) {
  const MailboxPage page = MailboxPage::create().value();
  const pid_t process = startUser(page, [](MailboxPage own) {
    MailboxClient client(std::move(own));
    ::_exit(client.call(wordsOf(5)) ? 0 : 1);
  });
  bool isReaped = false;
  MailboxServer server(mappedAgain(page), [&] {
    isReaped = isReaped || ::waitpid(process, nullptr, WNOHANG) == process;
    return !isReaped;
  });
  const Result<MailboxWords> request = server.receive();
  ASSERT_TRUE(request);
  EXPECT_EQ(*request, wordsOf(5));
  server.answer({});
  const Result<MailboxWords> next = server.receive();
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code(), ErrorCode::kDeadObject);
  EXPECT_TRUE(isReaped);
}

// Kills a process some time later, and closes an end when it is dead, as the end of a connection
// does.
class Killer {
 public:
  Killer(pid_t process, std::chrono::microseconds delay, std::function<void()> close)
      : thread_([process, delay, close = std::move(close)] {
          std::this_thread::sleep_for(delay);
          ::kill(process, SIGKILL);
          int status = 0;
          EXPECT_EQ(::waitpid(process, &status, 0), process);
          EXPECT_TRUE(WIFSIGNALED(status)) << status;
          close();
        }) {}
  ~Killer() { thread_.join(); }

 private:
  std::thread thread_;
};

int killings() {
  const char* const isLong = std::getenv("HEARTH_TEST_LONG");
  return isLong != nullptr && std::string(isLong) == "1" ? 1000 : 100;
}

// Spread over the first three milliseconds.
std::chrono::microseconds killTime(int round) {
  return std::chrono::microseconds(round % 100 * 29 + round / 100);
}

TEST(Mailbox, AHostIsKilledAtAnyMoment) {
  int right = 0;
  for (int round = 0; round < killings(); ++round) {
    const MailboxPage page = MailboxPage::create().value();
    const pid_t host = startUser(page, [](MailboxPage own) {
      MailboxServer server(std::move(own));
      serve(server);
    });
    MailboxClient client(mappedAgain(page));
    const Killer killer(host, killTime(round), [&] { client.close(); });
    for (uint64_t i = 0;; ++i) {
      const Result<MailboxWords> answer = client.call(wordsOf(i));
      if (!answer) {
        EXPECT_EQ(answer.error().code(), ErrorCode::kDeadObject);
        break;
      }
      ASSERT_EQ(*answer, answerTo(wordsOf(i)));
      ++right;
    }
  }
  EXPECT_GT(right, 0);
}

TEST(Mailbox, AClientIsKilledAtAnyMoment) {
  int right = 0;
  for (int round = 0; round < killings(); ++round) {
    const MailboxPage page = MailboxPage::create().value();
    const pid_t process = startUser(page, [](MailboxPage own) {
      MailboxClient client(std::move(own));
      for (uint64_t i = 0; client.call(wordsOf(i)); ++i) continue;
    });
    MailboxServer server(mappedAgain(page));
    const Killer killer(process, killTime(round), [&] { server.close(); });
    for (;;) {
      const Result<MailboxWords> request = server.receive();
      if (!request) {
        EXPECT_EQ(request.error().code(), ErrorCode::kDeadObject);
        break;
      }
      ASSERT_EQ(*request, wordsOf((*request)[0]));
      server.answer(answerTo(*request));
      ++right;
    }
  }
  EXPECT_GT(right, 0);
}

TEST(Mailbox, AnEndThatLeavesEndsTheWaitOfTheOther) {
  for (const bool isClientWaiting : {true, false}) {
    const MailboxPage page = MailboxPage::create().value();
    auto server = std::make_unique<MailboxServer>(mappedAgain(page));
    auto client = std::make_unique<MailboxClient>(mappedAgain(page));
    std::atomic<bool> isOver = false;
    std::thread waits([&] {
      const Result<MailboxWords> words = isClientWaiting ? client->call({}) : server->receive();
      isOver = !words && words.error().code() == ErrorCode::kDeadObject &&
               words.error().message() == "The other end of the mailbox is gone.";
    });
    const MailboxSide& waiting = isClientWaiting ? page.client() : page.server();
    while (waiting.isSleeping == 0) std::this_thread::yield();
    if (isClientWaiting) {
      server.reset();
    } else {
      client.reset();
    }
    waits.join();
    EXPECT_TRUE(isOver) << isClientWaiting;
  }
}

TEST_F(MailboxTest, ClosingEndsAWaitAndAllLaterOnes) {
  std::atomic<int> dead = 0;
  std::thread waits([&] {
    for (int i = 0; i < 2; ++i) {
      const Result<MailboxWords> answer = client_.call({});
      if (!answer && answer.error().code() == ErrorCode::kDeadObject) ++dead;
    }
  });
  while (page_.client().isSleeping == 0) std::this_thread::yield();
  client_.close();
  waits.join();
  EXPECT_EQ(dead, 2);
  const Result<MailboxWords> request = server_.receive();
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code(), ErrorCode::kDeadObject);
}

// Each time at another moment of the wait.
TEST(Mailbox, ClosingMeetsAWaitAtAnyMoment) {
  for (int round = 0; round < 300; ++round) {
    MailboxPage page = MailboxPage::create().value();
    MailboxServer server(mappedAgain(page));
    std::atomic<bool> isThere = false;
    std::atomic<bool> isDead = false;
    std::thread waits([&] {
      isThere = true;
      const Result<MailboxWords> request = server.receive();
      isDead = !request && request.error().code() == ErrorCode::kDeadObject;
    });
    while (!isThere) std::this_thread::yield();
    for (int i = 0; i < round * 20; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    server.close();
    waits.join();
    ASSERT_TRUE(isDead) << round;
  }
}

TEST_F(MailboxTest, ACallMissesItsDeadlineAndTheNextOneWaitsForItsAnswer) {
  const Result<MailboxWords> late = client_.call(wordsOf(10), afterMilliseconds(1));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::kMissedDeadlineTransient);
  EXPECT_TRUE(client_.isBusy());
  // The host still has the first request, and no second one.
  const Result<MailboxWords> next = client_.call(wordsOf(20), afterMilliseconds(1));
  ASSERT_FALSE(next);
  EXPECT_EQ(server_.receive().value(), wordsOf(10));
  EXPECT_FALSE(server_.receive(base::Deadline::after(0)));
  server_.answer(answerTo(wordsOf(10)));
  std::thread host([&] { serve(server_); });
  EXPECT_EQ(client_.call(wordsOf(30)).value(), answerTo(wordsOf(30)));
  EXPECT_FALSE(client_.isBusy());
  client_.close();
  host.join();
}

TEST_F(MailboxTest, AHostWaitsAgainAfterADeadline) {
  for (int i = 0; i < 3; ++i) {
    const Result<MailboxWords> request = server_.receive(afterMilliseconds(1));
    ASSERT_FALSE(request);
    EXPECT_EQ(request.error().code(), ErrorCode::kMissedDeadlineTransient);
  }
  std::thread host([&] { serve(server_); });
  EXPECT_EQ(callOften(client_, 10), 10);
  client_.close();
  host.join();
}

// The numbers of requests begin again after 2^32 of them.
TEST_F(MailboxTest, NumbersMayBeAny) {
  page_.client().sequence = UINT32_MAX;
  page_.client().words[0] = 3;
  EXPECT_EQ(server_.receive().value()[0], 3u);
  server_.answer(wordsOf(1));
  EXPECT_EQ(page_.server().sequence, UINT32_MAX);
  page_.client().sequence = 0;
  EXPECT_EQ(server_.receive().value()[0], 3u);
  server_.answer(wordsOf(2));
  EXPECT_EQ(page_.server().sequence, 0u);
  EXPECT_FALSE(server_.receive(base::Deadline::after(0)));
}

// A peer that writes anything anywhere in the page, at any moment, and wakes whom it likes.
class Scribbler {
 public:
  explicit Scribbler(const MailboxPage& page, unsigned seed)
      : page_(mappedAgain(page)), thread_([this, seed] { run(seed); }) {}
  ~Scribbler() {
    isOver_ = true;
    thread_.join();
  }

 private:
  void run(unsigned seed) {
    std::mt19937_64 random(seed);
    const auto words = static_cast<uint32_t*>(page_.data());
    constexpr size_t kWords = 256 / sizeof(uint32_t);
    while (!isOver_) {
      const size_t index = random() % kWords;
      std::atomic_ref word(words[index]);
      switch (random() % 4) {
        case 0:
          word = static_cast<uint32_t>(random());
          break;
        case 1:
          word = static_cast<uint32_t>(random() % 3);
          break;
        case 2:
          word = word + 1;
          break;
        default:
          ::syscall(SYS_futex, words + index, FUTEX_WAKE, 10, nullptr, nullptr, 0);
      }
    }
  }

  const MailboxPage page_;
  std::atomic<bool> isOver_ = false;
  std::thread thread_;
};

TEST_F(MailboxTest, WhoScribblesOverAPageHarmsThatMailboxOnly) {
  const MailboxPage other = MailboxPage::create().value();
  MailboxServer otherServer(mappedAgain(other));
  MailboxClient otherClient(mappedAgain(other));
  std::atomic<bool> isOver = false;
  std::atomic<int> receipts = 0;
  std::thread otherHost([&] { serve(otherServer); });
  std::thread host([&] {
    while (!isOver) {
      const Result<MailboxWords> request = server_.receive(afterMilliseconds(1));
      if (request) server_.answer(answerTo(*request));
      ++receipts;
    }
  });
  int returned = 0;
  {
    const Scribbler scribbler(page_, 1);
    for (int i = 0; i < 100; ++i) {
      // Whatever the outcome, it has one.
      static_cast<void>(client_.call(wordsOf(1), afterMilliseconds(1)));
      ++returned;
      EXPECT_EQ(callOften(otherClient, 5), 5);
    }
    // The calls may all fail before the host has its first turn.
    for (int i = 0; i < 60'000 && receipts == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  isOver = true;
  host.join();
  otherClient.close();
  otherHost.join();
  EXPECT_EQ(returned, 100);
  EXPECT_GT(receipts, 0);
}

TEST(Mailbox, ClosingEndsAWaitOverAPageThatIsScribbledOver) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const MailboxPage page = MailboxPage::create().value();
    MailboxServer server(mappedAgain(page));
    MailboxClient client(mappedAgain(page));
    std::atomic<bool> isClosed = false;
    const Scribbler scribbler(page, seed);
    std::thread host([&] {
      while (!isClosed) static_cast<void>(server.receive());
    });
    std::thread caller([&] {
      while (!isClosed) static_cast<void>(client.call({}));
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    isClosed = true;
    server.close();
    client.close();
    host.join();
    caller.join();
    EXPECT_FALSE(server.receive());
    EXPECT_FALSE(client.call({}));
  }
}

// The kernel lets whoever has the memory move a sleeping thread to another futex, where no wake-up
// reaches it.
TEST_F(MailboxTest, AStolenWakeUpDelaysAndNoMore) {
  std::atomic<bool> isDead = false;
  std::thread waits([&] {
    const Result<MailboxWords> request = server_.receive();
    isDead = !request && request.error().code() == ErrorCode::kDeadObject;
  });
  const auto word = static_cast<uint32_t*>(page_.data());  // the client's sequence
  long moved = 0;
  while (moved == 0) {
    moved = ::syscall(SYS_futex, word, FUTEX_REQUEUE, 0, 10L, word + 32, 0);
    std::this_thread::yield();
  }
  EXPECT_EQ(moved, 1);
  server_.close();
  waits.join();
  EXPECT_TRUE(isDead);
}

TEST_F(MailboxTest, WakingForNothingEndsNoWait) {
  std::atomic<bool> isOver = false;
  std::thread wakes([&] {
    const auto word = static_cast<uint32_t*>(page_.data());
    while (!isOver) {
      ::syscall(SYS_futex, word, FUTEX_WAKE, 10, nullptr, nullptr, 0);
      std::this_thread::yield();
    }
  });
  std::atomic<uint64_t> first = 0;
  std::thread host([&] {
    const Result<MailboxWords> request = server_.receive();
    if (request) {
      first = (*request)[0];
      server_.answer({});
    }
  });
  while (page_.server().isSleeping == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(first, 0u);
  EXPECT_TRUE(client_.call(wordsOf(77)));
  host.join();
  isOver = true;
  wakes.join();
  EXPECT_EQ(first, 77u);
}

}  // namespace
}  // namespace hearth::ipc
