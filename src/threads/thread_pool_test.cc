// SPDX-License-Identifier: Apache-2.0
#include "threads/thread_pool.h"

#include <gtest/gtest.h>
#include <pthreadpool.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

// The pool starts threads in a forked child on purpose. The function is exported, so that the
// sanitizer's library finds it.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options();
const char* __tsan_default_options() {
  return "die_after_fork=0";
}

namespace hearth::threads {
namespace {

using Clock = std::chrono::steady_clock;

std::unique_ptr<ThreadPool> makePool(size_t threads) {
  auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool) << pool.error().toString();
  return std::move(*pool);
}

// Waits until another thread makes the condition true; false if that does not happen.
template <typename Condition>
bool eventually(Condition&& condition) {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// True when `count` items run at the same time.
bool runAtOnce(ThreadPool& pool, size_t count) {
  std::atomic<size_t> started{0};
  std::atomic<bool> met{true};
  pool.parallelFor(count, [&](size_t) {
    ++started;
    if (!eventually([&] { return started == count; })) met = false;
  });
  return met;
}

bool sumIsRight(ThreadPool& pool, size_t count) {
  std::atomic<size_t> sum{0};
  pool.parallelFor(count, [&](size_t i) { sum += i + 1; });
  return sum == count * (count + 1) / 2;
}

std::chrono::duration<double> processTime() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval time) {
    return time.tv_sec + time.tv_usec * 1e-6;
  };
  return std::chrono::duration<double>(seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

// The exception may be thrown on any thread, while other threads run tasks.
TEST(ThreadPoolTest, AnExceptionReachesTheCallerAfterAllTasksHaveEnded) {
  const std::unique_ptr<ThreadPool> pool = makePool(4);
  for (size_t bad = 0; bad < 64; ++bad) {
    std::atomic<int> inside = 0;
    EXPECT_THROW(pool->parallelFor(64,
                                   [&](size_t i) {
                                     ++inside;
                                     if (i == bad) {
                                       --inside;
                                       throw std::bad_alloc();
                                     }
                                     for (int spin = 0; spin < 100; ++spin)
                                       std::this_thread::yield();
                                     --inside;
                                   }),
                 std::bad_alloc);
    EXPECT_EQ(inside, 0);
  }
  EXPECT_TRUE(sumIsRight(*pool, 1000));
  EXPECT_TRUE(runAtOnce(*pool, 4)) << "all threads are there for the next call";
}

TEST(ThreadPoolTest, OneOfManyExceptionsReachesTheCaller) {
  const std::unique_ptr<ThreadPool> pool = makePool(4);
  for (int round = 0; round < 100; ++round)
    EXPECT_THROW(pool->parallelFor(1000, [](size_t) { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_THROW(ThreadPool::runSerially(
                   1, [](void*, size_t, size_t, size_t) { throw std::bad_alloc(); }, nullptr, 0),
               std::bad_alloc);
  EXPECT_TRUE(sumIsRight(*pool, 1000));
}

// Workers leave the caller's processor when they wake up on it, but may run on every processor of
// the process.
TEST(ThreadPool, WorkersMayUseEveryProcessor) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  const auto pool = makePool(3);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> wrong{0};
    std::atomic<size_t> started{0};
    pool->parallelFor(3, [&](size_t) {
      // Waits, so that each task runs on a thread of its own.
      ++started;
      eventually([&] { return started == 3; });
      cpu_set_t mine;
      if (sched_getaffinity(0, sizeof mine, &mine) != 0 || !CPU_EQUAL(&mine, &all)) ++wrong;
    });
    EXPECT_EQ(wrong, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(ThreadPool, RefusesTooManyThreads) {
  auto pool = ThreadPool::create(ThreadPool::kMaxThreads + 1);
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().code(), ErrorCode::kBadData);
}

TEST(ThreadPool, CreatedAsleepItStartsNoThreadBeforeItsFirstRun) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  const auto before = threads();
  {
    EXPECT_TRUE(ThreadPool::createAsleep(3)) << "destroyed as it is";
  }
  const auto called = ThreadPool::createAsleep(3).value();
  const auto started = ThreadPool::createAsleep(3).value();
  EXPECT_EQ(threads(), before);
  started->start();
  EXPECT_EQ(threads(), before + 2);
  started->start();
  EXPECT_EQ(threads(), before + 2);
  EXPECT_TRUE(runAtOnce(*started, 3));
  EXPECT_TRUE(runAtOnce(*called, 3));
  EXPECT_EQ(threads(), before + 4);
  EXPECT_FALSE(ThreadPool::createAsleep(ThreadPool::kMaxThreads + 1));
}

TEST(ThreadPool, ZeroMeansOneThreadPerProcessor) {
  EXPECT_GE(makePool(0)->threadCount(), 1u);
}

TEST(ThreadPool, AllThreadsTakePart) {
  for (const size_t threads : {1, 2, 3, 4}) {
    const auto pool = makePool(threads);
    EXPECT_EQ(pool->threadCount(), threads);
    EXPECT_TRUE(runAtOnce(*pool, threads));
    const ActiveRun run(pool.get());
    EXPECT_TRUE(runAtOnce(*pool, threads));
    EXPECT_TRUE(runAtOnce(*pool, threads));
  }
}

TEST(ThreadPool, ParallelForGivesThreadNumbers) {
  const auto pool = makePool(3);
  std::vector<std::atomic<int>> visits(5000);
  std::vector<std::atomic<bool>> inUse(3);
  std::atomic<bool> wrong{false};
  pool->parallelFor(visits.size(), [&](size_t index, size_t thread) {
    if (thread >= 3 || inUse[thread].exchange(true)) {
      wrong = true;
      return;
    }
    ++visits[index];
    inUse[thread] = false;
  });
  EXPECT_FALSE(wrong);
  for (const auto& count : visits) ASSERT_EQ(count, 1);
}

TEST(ThreadPool, IdlePoolsComeAndGo) {
  for (int i = 0; i < 50; ++i) {
    const auto pool = makePool(1 + i % 4);
    if (i % 3 == 0) {
      EXPECT_TRUE(sumIsRight(*pool, 100));
    }
  }
}

TEST(ThreadPool, SecondClientIsNotHeldUpByTheFirst) {
  const auto pool = makePool(2);
  std::atomic<size_t> started{0};
  std::atomic<bool> secondDone{false};
  std::atomic<bool> stuck{false};
  std::thread first([&] {
    pool->parallelFor(2, [&](size_t) {
      ++started;
      if (!eventually([&] { return secondDone.load(); })) stuck = true;
    });
  });
  EXPECT_TRUE(eventually([&] { return started == 2; }));
  EXPECT_TRUE(sumIsRight(*pool, 1000));
  EXPECT_EQ(pool->counters().serialCalls, 1u);
  secondDone = true;
  first.join();
  EXPECT_FALSE(stuck);
  EXPECT_EQ(pool->counters().calls, 2u);
}

TEST(ThreadPool, ManyClientsGetRightResults) {
  const auto pool = makePool(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (size_t client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      for (size_t round = 0; round < 60; ++round) {
        std::unique_ptr<ActiveRun> run;
        if (round % 3 != client % 3) run = std::make_unique<ActiveRun>(pool.get());
        for (size_t call = 0; call < 20; ++call) {
          if (!sumIsRight(*pool, 1 + (client * 131 + round * 17 + call * 7) % 300)) ++wrong;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, EachActiveRunKeepsAThread) {
  const auto pool = makePool(2);
  {
    const ActiveRun mine(pool.get());
    EXPECT_TRUE(runAtOnce(*pool, 2));
    EXPECT_EQ(pool->counters().serialCalls, 0u);
    const ActiveRun another(pool.get());
    EXPECT_TRUE(sumIsRight(*pool, 100));
    EXPECT_EQ(pool->counters().serialCalls, 1u);
  }
  EXPECT_TRUE(runAtOnce(*pool, 2));
}

TEST(ThreadPool, NestedCallRunsInItsTask) {
  const auto pool = makePool(3);
  const auto other = makePool(2);
  std::atomic<bool> wrong{false};
  std::atomic<size_t> inner{0};
  pool->parallelFor(9, [&](size_t) {
    const std::thread::id self = std::this_thread::get_id();
    const auto check = [&](size_t) {
      if (std::this_thread::get_id() != self) wrong = true;
      ++inner;
    };
    pool->parallelFor(11, check);
    other->parallelFor(11, check);
  });
  EXPECT_FALSE(wrong);
  EXPECT_EQ(inner, 9u * 22u);
  EXPECT_TRUE(runAtOnce(*other, 2));
}

// Runs body() in a forked child; true when it returns true there.
template <typename Body>
bool inChild(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

TEST(ThreadPool, ForkedChildStartsItsOwnWorkers) {
  auto pool = makePool(3);
  EXPECT_TRUE(runAtOnce(*pool, 3));
  EXPECT_TRUE(inChild([&] {
    const bool right = runAtOnce(*pool, 3) && sumIsRight(*pool, 1000);
    pool.reset();
    return right;
  }));
  EXPECT_TRUE(runAtOnce(*pool, 3));
}

TEST(ThreadPool, ForkedChildMayDestroyAnUnusedPool) {
  auto pool = makePool(3);
  EXPECT_TRUE(inChild([&] {
    pool.reset();
    return true;
  }));
}

TEST(ThreadPool, ForkWithinRunsAndCalls) {
  const auto pool = makePool(2);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) sumIsRight(*pool, 50);
  });
  for (int i = 0; i < 10; ++i) {
    const ActiveRun run(pool.get());
    EXPECT_TRUE(inChild([&] {
      {
        const ActiveRun childRun(pool.get());
      }
      return runAtOnce(*pool, 2);
    }));
  }
  stop = true;
  busy.join();
}

// Spinning would take 0.9 s of processor time for each of the two waits; the bound leaves room for
// a slow machine.
TEST(ThreadPool, WaitingWorkersUseNoProcessorTime) {
  const auto pool = makePool(4);
  const auto start = processTime();
  EXPECT_TRUE(runAtOnce(*pool, 4));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  {
    const ActiveRun run(pool.get());
    EXPECT_TRUE(sumIsRight(*pool, 1000));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  EXPECT_LT((processTime() - start).count(), 0.3);
}

// The same on a machine that gives spinning threads no time.
TEST(ThreadPool, WaitingWorkersSleep) {
  const auto pool = makePool(4);
  EXPECT_TRUE(runAtOnce(*pool, 4));
  const auto sleepers = [] {
    size_t count = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream file(thread.path() / "stat");
      std::string stat;
      std::getline(file, stat);
      if (stat.find("(hearth-worker) S ") != std::string::npos) ++count;
    }
    return count;
  };
  EXPECT_TRUE(eventually([&] { return sleepers() == 3; }));
}

// How many of 100 runs found the worker asleep, where each begins `gap` after the one before.
uint64_t wakesOfRuns(ThreadPool& pool, std::chrono::microseconds gap) {
  const uint64_t before = pool.counters().wakingCalls;
  for (int i = 0; i < 100; ++i) {
    {
      const ActiveRun run(&pool);
      runAtOnce(pool, 2);
    }
    const Clock::time_point end = Clock::now() + gap;
    while (Clock::now() < end) {
    }
  }
  return pool.counters().wakingCalls - before;
}

// A machine with other work may take the worker's processor away in any gap, therefore the
// attempts.
TEST(ThreadPool, WorkersStayAwakeBetweenRunsThatFollowAtOnce) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "needs two processors";
  const std::unique_ptr<ThreadPool> pool = makePool(2);
  EXPECT_TRUE(eventually([&] { return wakesOfRuns(*pool, std::chrono::microseconds(15)) < 30; }));
}

TEST(ThreadPool, WorkersSleepBetweenRunsThatAreApart) {
  const std::unique_ptr<ThreadPool> pool = makePool(2);
  wakesOfRuns(*pool, std::chrono::microseconds(0));
  EXPECT_TRUE(eventually([&] { return wakesOfRuns(*pool, std::chrono::milliseconds(2)) > 90; }));
}

TEST(ThreadPool, DenormalsAreFlushedInTasksOnly) {
#if defined(__SSE2__) || defined(__aarch64__)
  const auto pool = makePool(2);
  const auto survives = [] {
    volatile float tiny = std::numeric_limits<float>::denorm_min();
    volatile float product = tiny * 1.0f;
    return product != 0.0f;
  };
  for (const uint32_t flags : {0u, uint32_t{PTHREADPOOL_FLAG_DISABLE_DENORMALS}}) {
    std::atomic<int> started{0};
    std::atomic<int> surviving{0};
    auto task = [&] {
      ++started;
      eventually([&] { return started == 2; });
      if (survives()) ++surviving;
    };
    pool->run(
        2,
        [](void* context, size_t, size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) (*static_cast<decltype(task)*>(context))();
        },
        &task, flags);
    EXPECT_EQ(surviving, flags == 0 ? 2 : 0);
    EXPECT_TRUE(survives());
  }
#else
  GTEST_SKIP() << "No control of denormals is known for this processor.";
#endif
}

}  // namespace
}  // namespace hearth::threads
