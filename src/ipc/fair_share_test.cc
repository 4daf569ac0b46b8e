// SPDX-License-Identifier: Apache-2.0
#include "ipc/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::ipc {
namespace {

using hal::Priority;
using std::chrono::milliseconds;

constexpr uint32_t kHolder = 1000;  // a user that only keeps the device from the others

void waitFor(const FairShare& share, size_t waiting) {
  while (share.waiting() != waiting) std::this_thread::yield();
}

// Executions that wait for a device that is taken; each has a thread.
class Queue {
 public:
  Queue() : holder_(share_.addClient(kHolder)), held_(holder_.take(Priority::kMedium).value()) {}
  ~Queue() {
    held_.end(milliseconds(0));
    for (std::thread& thread : threads_) thread.join();
  }

  void start(FairShare::Client& client, Priority priority, std::string name,
             base::Deadline deadline = {}) {
    threads_.emplace_back([this, &client, priority, name = std::move(name), deadline] {
      Result<FairShare::Turn> turn = client.take(priority, deadline);
      const std::lock_guard lock(mutex_);
      if (turn) {
        order_.push_back(name);
        turn->end(milliseconds(1));
      } else {
        order_.push_back(name + " " + base::errorCodeName(turn.error().code()));
      }
    });
  }
  // The same, but returns when the execution waits.
  void add(FairShare::Client& client, Priority priority, std::string name) {
    const size_t before = share_.waiting();
    start(client, priority, std::move(name));
    waitFor(share_, before + 1);
  }
  // Returns when `count` executions have their turn behind them, or went without.
  void waitUntilOver(size_t count) {
    for (size_t over = 0; over < count;) {
      std::this_thread::yield();
      const std::lock_guard lock(mutex_);
      over = order_.size();
    }
  }
  // Lets the device go and returns who got it, in order.
  std::vector<std::string> order() {
    held_.end(milliseconds(0));
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return order_;
  }
  FairShare& share() { return share_; }

 private:
  FairShare share_;
  FairShare::Client holder_;
  FairShare::Turn held_;
  std::mutex mutex_;
  std::vector<std::string> order_;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

// Clients that want turns all the time, mostly with two threads each, so that one waits when the
// other's turn ends. A turn ends when all other threads wait, so who gets which turn does not
// depend on how fast threads run.
class Crowd {
 public:
  struct Member {
    FairShare::Client* client;
    Priority priority;
    milliseconds cost;
    size_t threads = 2;
  };

  // How many of `turns` turns each member gets.
  static std::vector<int> count(FairShare& share, const std::vector<Member>& members, int turns) {
    FairShare::Client holder = share.addClient(kHolder);
    FairShare::Turn held = holder.take(Priority::kMedium).value();
    std::vector<int> counts(members.size());  // guarded by the turn
    int total = 0;                            // likewise
    std::vector<std::thread> threads;
    size_t all = 0;
    for (const Member& member : members) all += member.threads;
    for (size_t i = 0; i < members.size(); ++i) {
      for (size_t k = 0; k < members[i].threads; ++k) {
        threads.emplace_back([&, i] {
          for (;;) {
            FairShare::Turn turn = members[i].client->take(members[i].priority).value();
            if (total == turns) return;
            waitFor(share, all - 1);
            ++counts[i];
            ++total;
            turn.end(members[i].cost);
          }
        });
        waitFor(share, threads.size());
      }
    }
    held.end(milliseconds(0));
    for (std::thread& thread : threads) thread.join();
    return counts;
  }
};

TEST(FairShare, AFreeDeviceIsGivenAtOnce) {
  FairShare share;
  FairShare::Client client = share.addClient(1);
  FairShare::Turn turn = client.take(Priority::kLow).value();
  EXPECT_EQ(share.running(), 1u);
  EXPECT_EQ(share.waiting(), 0u);
  turn.end(milliseconds(3));
  EXPECT_EQ(share.running(), 0u);
  turn.end(milliseconds(3));
  EXPECT_EQ(share.running(), 0u);
}

TEST(FairShare, ATurnEndsWithItsObject) {
  FairShare share;
  FairShare::Client client = share.addClient(1);
  {
    FairShare::Turn turn = client.take(Priority::kMedium).value();
    FairShare::Turn moved = std::move(turn);
    EXPECT_EQ(share.running(), 1u);
    moved = FairShare::Turn();
    EXPECT_EQ(share.running(), 0u);
    moved = client.take(Priority::kMedium).value();
    EXPECT_EQ(share.running(), 1u);
  }
  EXPECT_EQ(share.running(), 0u);
}

TEST(FairShare, ExecutionsOfOneClientGoByPriorityThenByArrival) {
  Queue queue;
  FairShare::Client client = queue.share().addClient(1);
  queue.add(client, Priority::kLow, "low 1");
  queue.add(client, Priority::kHigh, "high 1");
  queue.add(client, Priority::kMedium, "medium 1");
  queue.add(client, Priority::kHigh, "high 2");
  queue.add(client, Priority::kMedium, "medium 2");
  EXPECT_EQ(queue.order(),
            (std::vector<std::string>{"high 1", "high 2", "medium 1", "medium 2", "low 1"}));
}

TEST(FairShare, AClientThatAsksForMuchWaitsForItself) {
  Queue queue;
  FairShare::Client greedy = queue.share().addClient(1);
  FairShare::Client modest = queue.share().addClient(2);
  for (int i = 0; i < 4; ++i) queue.add(greedy, Priority::kHigh, "greedy");
  queue.add(modest, Priority::kLow, "modest");
  const std::vector<std::string> order = queue.order();
  ASSERT_EQ(order.size(), 5u);
  EXPECT_EQ(order[1], "modest");
}

TEST(FairShare, ClientsGetEqualTimesNotEqualNumbers) {
  FairShare share;
  FairShare::Client quick = share.addClient(1);
  FairShare::Client slow = share.addClient(2);
  const std::vector<int> counts = Crowd::count(
      share,
      {{&quick, Priority::kMedium, milliseconds(1)}, {&slow, Priority::kMedium, milliseconds(10)}},
      110);
  EXPECT_NEAR(counts[0], 100, 2);
  EXPECT_NEAR(counts[1], 10, 2);
}

TEST(FairShare, PrioritiesShareOutTheTimeOfOneUser) {
  FairShare share;
  FairShare::Client high = share.addClient(1);
  FairShare::Client medium = share.addClient(1);
  FairShare::Client low = share.addClient(1);
  constexpr milliseconds kCost(4);
  const std::vector<int> counts = Crowd::count(share,
                                               {{&high, Priority::kHigh, kCost},
                                                {&medium, Priority::kMedium, kCost},
                                                {&low, Priority::kLow, kCost}},
                                               210);
  EXPECT_NEAR(counts[0], 160, 5);
  EXPECT_NEAR(counts[1], 40, 5);
  EXPECT_NEAR(counts[2], 10, 2);
}

TEST(FairShare, PrioritiesDoNotCountAmongUsers) {
  FairShare share;
  FairShare::Client high = share.addClient(1);
  FairShare::Client low = share.addClient(2);
  const std::vector<int> counts = Crowd::count(
      share, {{&high, Priority::kHigh, milliseconds(1)}, {&low, Priority::kLow, milliseconds(1)}},
      100);
  EXPECT_EQ(counts[0], 50);
  EXPECT_EQ(counts[1], 50);
}

TEST(FairShare, ManyClientsOfAUserGetNoMoreThanOne) {
  FairShare share;
  std::vector<FairShare::Client> many;
  for (int i = 0; i < 5; ++i) many.push_back(share.addClient(1));
  FairShare::Client single = share.addClient(2);
  std::vector<Crowd::Member> members;
  for (FairShare::Client& client : many)
    members.push_back({&client, Priority::kHigh, milliseconds(2)});
  members.push_back({&single, Priority::kMedium, milliseconds(2)});
  const std::vector<int> counts = Crowd::count(share, members, 100);
  EXPECT_EQ(counts.back(), 50);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(counts[i], 10) << i;
}

// Otherwise who was idle for an hour could have the device for an hour.
TEST(FairShare, IdlenessSavesLittleUp) {
  FairShare share;
  FairShare::Client busy = share.addClient(1);
  FairShare::Client early = share.addClient(2);
  early.take(Priority::kMedium).value().end(milliseconds(1));
  for (int i = 0; i < 100; ++i) busy.take(Priority::kMedium).value().end(milliseconds(100));
  FairShare::Client late = share.addClient(3);
  constexpr milliseconds kCost(5);
  const std::vector<int> counts = Crowd::count(share,
                                               {{&busy, Priority::kMedium, kCost},
                                                {&early, Priority::kMedium, kCost},
                                                {&late, Priority::kMedium, kCost}},
                                               100);
  // The last turn of the busy one, of 100 ms, was the device's last; four turns are 20 ms.
  EXPECT_NEAR(counts[0], 19, 2);
  EXPECT_NEAR(counts[1], 43, 2);
  EXPECT_NEAR(counts[2], 39, 2);
}

TEST(FairShare, ANewClientOfAUserHasNothingToCatchUpOn) {
  FairShare share;
  FairShare::Client old = share.addClient(1);
  for (int i = 0; i < 100; ++i) old.take(Priority::kMedium).value().end(milliseconds(100));
  FairShare::Client fresh = share.addClient(1);
  constexpr milliseconds kCost(5);
  const std::vector<int> counts = Crowd::count(
      share, {{&old, Priority::kMedium, kCost}, {&fresh, Priority::kMedium, kCost}}, 100);
  // The last turn of the old one took as long as twenty of these.
  EXPECT_NEAR(counts[0], 40, 2);
  EXPECT_NEAR(counts[1], 60, 2);
}

// It is not there when the device becomes free, and gets its part all the same.
TEST(FairShare, AClientWithOneExecutionAtATimeIsServedNext) {
  FairShare share;
  FairShare::Client single = share.addClient(1);
  std::vector<FairShare::Client> busy;
  for (uint32_t i = 0; i < 3; ++i) busy.push_back(share.addClient(2 + i));
  std::vector<Crowd::Member> members;
  for (FairShare::Client& client : busy)
    members.push_back({&client, Priority::kMedium, milliseconds(5)});
  members.push_back({&single, Priority::kMedium, milliseconds(1), 1});
  const std::vector<int> counts = Crowd::count(share, members, 60);
  // Every second turn: the others have used more.
  EXPECT_NEAR(counts[3], 30, 4);
}

TEST(FairShare, ConnectingAgainForgivesNoDebt) {
  FairShare share;
  FairShare::Client patient = share.addClient(1);
  patient.take(Priority::kMedium).value().end(milliseconds(1));
  {
    FairShare::Client greedy = share.addClient(2);
    greedy.take(Priority::kMedium).value().end(milliseconds(100));
  }
  FairShare::Client again = share.addClient(2);
  constexpr milliseconds kCost(1);
  const std::vector<int> counts = Crowd::count(
      share, {{&again, Priority::kHigh, kCost}, {&patient, Priority::kLow, kCost}}, 50);
  EXPECT_EQ(counts[0], 0);
  EXPECT_EQ(counts[1], 50);
}

TEST(FairShare, WhoseDeadlinePassesLeaves) {
  Queue queue;
  FairShare::Client client = queue.share().addClient(1);
  queue.start(client, Priority::kHigh, "late", base::Deadline::after(1'000'000));
  queue.waitUntilOver(1);
  queue.add(client, Priority::kMedium, "patient");
  EXPECT_EQ(queue.order(), (std::vector<std::string>{"late MISSED_DEADLINE_TRANSIENT", "patient"}));
  EXPECT_EQ(queue.share().running(), 0u);
}

TEST(FairShare, ADeadlineThatHasPassedGetsNoTurn) {
  FairShare share;
  FairShare::Client client = share.addClient(1);
  const auto turn = client.take(Priority::kHigh, base::Deadline::after(0));
  ASSERT_FALSE(turn);
  EXPECT_EQ(turn.error().code(), ErrorCode::kMissedDeadlineTransient);
  EXPECT_EQ(share.running(), 0u);
  EXPECT_TRUE(client.take(Priority::kHigh, base::Deadline::after(UINT64_MAX)));
}

TEST(FairShare, ClosingEndsTheWaitsOfAClient) {
  Queue queue;
  FairShare::Client closing = queue.share().addClient(1);
  FairShare::Client other = queue.share().addClient(1);
  queue.add(closing, Priority::kHigh, "closed");
  queue.add(closing, Priority::kLow, "closed");
  queue.add(other, Priority::kLow, "other");
  closing.close();
  queue.waitUntilOver(2);
  const auto turn = closing.take(Priority::kHigh);
  ASSERT_FALSE(turn);
  EXPECT_EQ(turn.error().code(), ErrorCode::kDeadObject);
  std::vector<std::string> order = queue.order();
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<std::string>{"closed DEAD_OBJECT", "closed DEAD_OBJECT", "other"}));
}

TEST(FairShare, ATurnOutlivesItsClientAndTheShare) {
  auto share = std::make_unique<FairShare>();
  auto client = std::make_unique<FairShare::Client>(share->addClient(1));
  FairShare::Turn turn = client->take(Priority::kMedium).value();
  client.reset();
  EXPECT_EQ(share->running(), 1u);
  FairShare::Client next = share->addClient(2);
  std::atomic<bool> hasTurn = false;
  std::thread waits([&] { hasTurn = next.take(Priority::kMedium).has_value(); });
  waitFor(*share, 1);
  share.reset();
  turn.end(milliseconds(1));
  waits.join();
  EXPECT_TRUE(hasTurn);
}

TEST(FairShare, ADeviceMayTakeSeveralExecutionsAtOnce) {
  FairShare share(2);
  FairShare::Client first = share.addClient(1);
  FairShare::Client second = share.addClient(2);
  FairShare::Turn one = first.take(Priority::kMedium).value();
  one.end(milliseconds(10));
  one = first.take(Priority::kMedium).value();
  FairShare::Turn two = first.take(Priority::kMedium).value();
  EXPECT_EQ(share.running(), 2u);
  // Both wait: the turn that ends goes to the one that has none.
  std::vector<std::thread> threads;
  std::vector<int> order;  // guarded by mutex
  std::mutex mutex;
  const auto wait = [&](FairShare::Client& client, int number) {
    threads.emplace_back([&, number] {
      FairShare::Turn turn = client.take(Priority::kMedium).value();
      const std::lock_guard lock(mutex);
      order.push_back(number);
    });
    waitFor(share, threads.size());
  };
  wait(first, 1);
  wait(second, 2);
  two.end(milliseconds(10));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
}

// What the thread sanitizer looks at.
TEST(FairShare, ManyThreadsTakeTurnsAndLeave) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 200;
  FairShare share(3);
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      FairShare::Client client = share.addClient(static_cast<uint32_t>(i % 3));
      for (int round = 0; round < kRounds; ++round) {
        if (round % 50 == 49) client = share.addClient(static_cast<uint32_t>(round % 5));
        const auto deadline = round % 3 == 0 ? base::Deadline::after(20'000) : base::Deadline();
        Result<FairShare::Turn> turn = client.take(Priority::kMedium, deadline);
        if (!turn) {
          ++failures;
          continue;
        }
        const int now = ++inside;
        int seen = most.load();
        while (now > seen && !most.compare_exchange_weak(seen, now)) continue;
        --inside;
        turn->end(std::chrono::nanoseconds(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 3);
  EXPECT_LE(failures, kThreads * kRounds);
  EXPECT_EQ(share.running(), 0u);
  EXPECT_EQ(share.waiting(), 0u);
}

}  // namespace
}  // namespace hearth::ipc
