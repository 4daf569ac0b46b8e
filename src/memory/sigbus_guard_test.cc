// SPDX-License-Identifier: Apache-2.0
#include "memory/sigbus_guard.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/fork_gate.h"
#include "base/fork_test_util.h"
#include "memory/mapping.h"
#include "memory/page_size.h"
#include "memory/sigbus_order.h"

namespace hearth::memory {
namespace {

constexpr size_t kSize = size_t{1} << 20;

class LostPagesTest : public testing::Test {
 protected:
  LostPagesTest() : file_(::memfd_create("lost-pages", MFD_CLOEXEC)) {
    const std::vector<uint8_t> content(kSize, 7);
    EXPECT_EQ(::pwrite(file_.get(), content.data(), kSize, 0), static_cast<ssize_t>(kSize));
    mapping_ = Mapping::ofFile(file_.get(), 0, kSize, Mapping::Access::kReadOnly).value();
  }
  size_t countOf(uint8_t value) const {
    return static_cast<size_t>(std::count(mapping_.data(), mapping_.data() + kSize, value));
  }

  base::Descriptor file_;
  Mapping mapping_;
};

TEST_F(LostPagesTest, AreReadAsZerosAndReported) {
  WatchedPages watched(mapping_.data(), kSize);
  EXPECT_EQ(countOf(7), kSize);
  EXPECT_FALSE(watched.hasLosses());
  const uint64_t before = lossCount();
  ASSERT_EQ(::ftruncate(file_.get(), kSize / 4), 0);
  EXPECT_EQ(countOf(0), kSize - kSize / 4);
  EXPECT_EQ(countOf(7), kSize / 4);
  EXPECT_TRUE(watched.hasLosses());
  EXPECT_GT(lossCount(), before);
  watched.forgetLosses();
  EXPECT_FALSE(watched.hasLosses());
}

// The handler in one thread maps the zeros that another thread reads.
TEST_F(LostPagesTest, AreCountedBeforeTheirZerosAreRead) {
  WatchedPages watched(mapping_.data(), kSize);
  ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
  const size_t step = pageSize();
  std::atomic<size_t> turn = 0;
  std::atomic<size_t> uncounted = 0;
  const volatile uint8_t* const bytes = mapping_.data();
  // Reads from the last page on, since a handler also replaces all pages after its own.
  const auto readAll = [&] {
    for (size_t page = kSize / step; page-- > 0;) {
      const uint64_t before = lossCount();
      const size_t reached = ++turn;
      while (turn.load() < (reached + 1) / 2 * 2) std::this_thread::yield();
      if (bytes[page * step] == 0 && lossCount() == before) ++uncounted;
    }
  };
  std::thread other(readAll);
  readAll();
  other.join();
  EXPECT_EQ(uncounted, 0u);
}

TEST_F(LostPagesTest, MemoryOfTheProcessNeedsNoHandlerUntilAFileIsMappedOverIt) {
  const auto handler = [] {
    struct sigaction action;
    ::sigaction(SIGBUS, nullptr, &action);
    return reinterpret_cast<uintptr_t>(action.sa_sigaction);
  };
  const uintptr_t before = handler();
  {
    // Two objects watch the same pages: both are notified of a loss.
    WatchedPages memory(mapping_.data(), kSize, WatchedPages::Of::kMemory);
    EXPECT_EQ(handler(), before);
    {
      const WatchedPages file(mapping_.data(), kSize);
      EXPECT_NE(handler(), before);
    }
    EXPECT_EQ(handler(), before);
    memory.becomeFile();
    memory.becomeFile();
    EXPECT_NE(handler(), before);
    ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
    EXPECT_EQ(countOf(0), kSize);
    EXPECT_TRUE(memory.hasLosses());
  }
  EXPECT_EQ(handler(), before);
}

TEST_F(LostPagesTest, MayBeReadBySeveralThreads) {
  const WatchedPages watched(mapping_.data(), kSize);
  ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
  std::vector<std::thread> threads;
  std::atomic<size_t> zeros = 0;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { zeros += countOf(0); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(zeros, 4 * kSize);
  EXPECT_TRUE(watched.hasLosses());
}

TEST_F(LostPagesTest, AreReportedToTheirRangesOnly) {
  WatchedPages first(mapping_.data(), kSize / 2);
  const WatchedPages second(mapping_.data() + kSize / 2, kSize / 2);
  WatchedPages moved = std::move(first);
  ASSERT_EQ(::ftruncate(file_.get(), kSize / 2), 0);
  EXPECT_EQ(countOf(0), kSize / 2);
  EXPECT_FALSE(moved.hasLosses());
  EXPECT_FALSE(first.hasLosses());
  EXPECT_TRUE(second.hasLosses());
}

TEST_F(LostPagesTest, SlotsOfEndedRangesAreReused) {
  constexpr size_t kPart = kSize / 16;
  const auto watch = [&](size_t part) {
    return WatchedPages(mapping_.data() + part * kPart, kPart);
  };
  std::vector<WatchedPages> first;
  for (size_t i = 0; i < 8; ++i) first.push_back(watch(i));
  // Frees slots from the middle, then from the front, then all others.
  first.erase(first.begin() + 4);
  const WatchedPages fourth = watch(4);
  first.erase(first.begin());
  const WatchedPages zeroth = watch(0);
  first.clear();
  std::vector<WatchedPages> second;
  for (size_t i = 8; i < 16; ++i) second.push_back(watch(i));
  ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
  for (const size_t part : {0, 4, 8, 9, 10, 11, 12, 13, 14, 15})
    EXPECT_EQ(mapping_.data()[part * kPart], 0) << part;
  EXPECT_TRUE(zeroth.hasLosses());
  EXPECT_TRUE(fourth.hasLosses());
  for (const WatchedPages& watched : second) EXPECT_TRUE(watched.hasLosses());
}

// Fork handlers ask for losses in the order of their registration; the guard's own is among them.
[[maybe_unused]] const bool asksAfterForks = [] {
  base::ForkGate::atFork({.afterInChild = [] {
    static_cast<void>(lossCount());
  }});
  return true;
}();

TEST_F(LostPagesTest, AChildDoesNotWaitForItsParentsHandlers) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  std::atomic<bool> isOver = false;
  std::vector<std::thread> losers;
  for (int i = 0; i < 4; ++i)
    losers.emplace_back([&] {
      while (!isOver) {
        const base::Descriptor file(::memfd_create("lost-pages", MFD_CLOEXEC));
        if (::ftruncate(file.get(), kSize) != 0) continue;
        const Mapping mapping =
            Mapping::ofFile(file.get(), 0, kSize, Mapping::Access::kReadOnly).value();
        const WatchedPages watched(mapping.data(), kSize);
        if (::ftruncate(file.get(), 0) != 0) continue;
        // Each fault maps zeros from its page to the end, so the last page must be lost first.
        for (size_t at = kSize; at > 0; at -= 4096)
          static_cast<void>(*static_cast<const volatile uint8_t*>(mapping.data() + at - 4096));
      }
    });
  for (int i = 0; i < 300; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    int status = -1;
    for (int waited = 0; ::waitpid(child, &status, WNOHANG) == 0; ++waited) {
      if (waited == 60'000) ::kill(child, SIGKILL);
      ::usleep(1000);
    }
    ASSERT_EQ(status, 0) << i;
  }
  isOver = true;
  for (std::thread& loser : losers) loser.join();
}

// What SIGBUS does in programs that use watched memory. Each test runs in a process of its own,
// which reports how it ended.
class BusSignalTest : public LostPagesTest {
 protected:
  struct End {
    int signal = 0;  // the signal that ended it
    int code = -1;
  };
  template <typename Work>
  static End inChild(Work work) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit noCore{};
      ::setrlimit(RLIMIT_CORE, &noCore);
      ::alarm(60);
      ::_exit(work());
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
    return {.code = WEXITSTATUS(status)};
  }

  // Whether a page that is lost now is read as zeros.
  static bool isProtected() {
    const base::Descriptor file(::memfd_create("lost-pages", MFD_CLOEXEC));
    if (::ftruncate(file.get(), kSize) != 0) return false;
    const Mapping mapping =
        Mapping::ofFile(file.get(), 0, kSize, Mapping::Access::kReadOnly).value();
    const WatchedPages watched(mapping.data(), kSize);
    return ::ftruncate(file.get(), 0) == 0 && mapping.data()[0] == 0 && watched.hasLosses();
  }
  // The same for the range that is already watched.
  bool isStillProtected() { return ::ftruncate(file_.get(), 0) == 0 && mapping_.data()[0] == 0; }
  // A fault outside all watched ranges.
  [[gnu::noinline]] static void fault() {
    const base::Descriptor file(::memfd_create("empty", MFD_CLOEXEC));
    void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0);
    faultAddress = page;
    static_cast<void>(*static_cast<volatile uint8_t*>(page));
  }
  static void set(void (*handler)(int), int flags = 0) {
    struct sigaction action{};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaddset(&action.sa_mask, SIGUSR1);
    ::sigaction(SIGBUS, &action, nullptr);
  }

  static inline int calls = 0;
  static inline void* faultAddress = nullptr;
  static inline sigjmp_buf back;
  static inline struct sigaction found;
};

TEST_F(BusSignalTest, KeepsItsMeaningWhileNothingIsWatched) {
  EXPECT_EQ(inChild([&] {
              struct sigaction before{};
              struct sigaction meanwhile{};
              struct sigaction after{};
              ::sigaction(SIGBUS, nullptr, &before);
              const WatchedPages nothing(mapping_.data(), 0);
              {
                const WatchedPages one(mapping_.data(), kSize / 2);
                WatchedPages other(mapping_.data() + kSize / 2, kSize / 2);
                ::sigaction(SIGBUS, nullptr, &meanwhile);
              }
              ::sigaction(SIGBUS, nullptr, &after);
              return before.sa_handler == after.sa_handler &&
                             before.sa_handler != meanwhile.sa_handler
                         ? 0
                         : 1;
            }).code,
            0);
}

TEST_F(BusSignalTest, ThatIsSentEndsAProcessWithoutAHandler) {
  EXPECT_EQ(inChild([&] {
              ::signal(SIGBUS, SIG_DFL);
              const WatchedPages watched(mapping_.data(), kSize);
              ::kill(::getpid(), SIGBUS);
              for (;;) ::pause();
              return 0;
            }).signal,
            SIGBUS);
}

TEST_F(BusSignalTest, ThatIsSentIsIgnoredWhereTheProgramIgnoresIt) {
  EXPECT_EQ(inChild([&] {
              ::signal(SIGBUS, SIG_IGN);
              const WatchedPages watched(mapping_.data(), kSize);
              ::raise(SIGBUS);
              return isStillProtected() ? 0 : 1;
            }).code,
            0);
}

TEST_F(BusSignalTest, ThatIsSentGetsToTheProgramsHandler) {
  EXPECT_EQ(inChild([&] {
              set([](int) { ++calls; });
              const WatchedPages watched(mapping_.data(), kSize);
              ::raise(SIGBUS);
              ::raise(SIGBUS);
              errno = 4711;
              const bool isRight = isStillProtected() && errno == 4711;
              return isRight && calls == 2 ? 0 : 1;
            }).code,
            0);
}

TEST_F(BusSignalTest, OfTheProgramsOwnFaultsEndsIt) {
  for (const auto action : {SIG_DFL, SIG_IGN})
    EXPECT_EQ(inChild([&] {
                ::signal(SIGBUS, action);
                const WatchedPages watched(mapping_.data(), kSize);
                fault();
                return 0;
              }).signal,
              SIGBUS);
}

TEST_F(BusSignalTest, OfTheProgramsOwnFaultsGetsToItsHandlerAgainAndAgain) {
  EXPECT_EQ(inChild([&] {
              struct sigaction action{};
              action.sa_sigaction = [](int, siginfo_t* info, void*) {
                sigset_t mask;
                ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
                if (info->si_addr == faultAddress && sigismember(&mask, SIGBUS) == 1 &&
                    sigismember(&mask, SIGUSR1) == 1)
                  ++calls;
                ::siglongjmp(back, 1);
              };
              action.sa_flags = SA_SIGINFO;
              sigaddset(&action.sa_mask, SIGUSR1);
              ::sigaction(SIGBUS, &action, nullptr);
              const WatchedPages watched(mapping_.data(), kSize);
              for (static int i = 0; i < 5; ++i)
                if (sigsetjmp(back, 1) == 0) fault();
              return isStillProtected() && calls == 5 ? 0 : 1;
            }).code,
            0);
}

TEST_F(BusSignalTest, GetsToAHandlerOnceThatAskedForThat) {
  EXPECT_EQ(inChild([&] {
              set([](int) { ++calls; }, static_cast<int>(SA_RESETHAND));
              const WatchedPages watched(mapping_.data(), kSize);
              ::raise(SIGBUS);
              if (calls != 1 || !isStillProtected()) return 1;
              ::raise(SIGBUS);
              return 2;
            }).signal,
            SIGBUS);
}

TEST_F(BusSignalTest, GetsToALaterHandlerThatDoesNotPassItOn) {
  EXPECT_EQ(inChild([&] {
              const WatchedPages watched(mapping_.data(), kSize);
              set([](int) {
                ++calls;
                ::siglongjmp(back, 1);
              });
              // From here on our handler is called first again.
              const bool isRight = isProtected() && isStillProtected() && calls == 0;
              for (static int i = 0; i < 3; ++i)
                if (sigsetjmp(back, 1) == 0) fault();
              return isRight && calls == 3 && isProtected() ? 0 : 1;
            }).code,
            0);
}

TEST_F(BusSignalTest, GetsOnceToALaterHandlerThatPassesItOnAndToTheOneBefore) {
  EXPECT_EQ(inChild([&] {
              set([](int) { ++calls; });
              const WatchedPages watched(mapping_.data(), kSize);
              struct sigaction later{};
              later.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
                calls += 10;
                found.sa_sigaction(signal, info, context);
              };
              later.sa_flags = SA_SIGINFO;
              ::sigaction(SIGBUS, &later, &found);
              ::raise(SIGBUS);
              if (calls != 11) return 1;
              if (!isProtected()) return 2;
              ::raise(SIGBUS);
              return calls == 22 && isStillProtected() ? 0 : 3;
            }).code,
            0);
}

TEST_F(BusSignalTest, GetsThroughTwoCopiesOfTheGuardToTheProgramsHandler) {
  void* const library = ::dlopen(HEARTH_SECOND_GUARD, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto watchInSecondCopy =
      reinterpret_cast<void (*)(const void*, size_t)>(::dlsym(library, "watchInSecondCopy"));
  ASSERT_NE(watchInSecondCopy, nullptr);
  EXPECT_EQ(inChild([&] {
              set([](int) { ++calls; });
              const WatchedPages watched(mapping_.data(), kSize / 2);
              watchInSecondCopy(mapping_.data() + kSize / 2, kSize / 2);
              ::raise(SIGBUS);
              if (calls != 1) return 1;
              // Now this copy comes first and third.
              if (!isProtected()) return 2;
              ::raise(SIGBUS);
              if (calls != 2) return 3;
              if (::ftruncate(file_.get(), 0) != 0 || countOf(0) != kSize || calls != 2) return 4;
              return watched.hasLosses() ? 0 : 5;
            }).code,
            0);
}

TEST_F(BusSignalTest, IsTheGuardsAgainWhenItIsPutFirst) {
  EXPECT_EQ(inChild([&] {
              const WatchedPages watched(mapping_.data(), kSize);
              set([](int) { ::_exit(77); });
              putSigbusGuardFirst();
              return isStillProtected() ? 0 : 1;
            }).code,
            0);
  EXPECT_EQ(inChild([&] {
              void (*const own)(int) = [](int) {
                ++calls;
              };
              set(own);
              putSigbusGuardFirst();  // nothing is watched
              struct sigaction now{};
              ::sigaction(SIGBUS, nullptr, &now);
              ::raise(SIGBUS);
              return calls == 1 && now.sa_handler == own ? 0 : 1;
            }).code,
            0);
}

TEST_F(BusSignalTest, IsTheGuardsWhileRangesAreWatchedTogetherAndAtTheirEnd) {
  EXPECT_EQ(inChild([&] {
              const WatchedTogether together;
              // Each is the only range and takes the handler away at its end.
              for (int i = 0; i < 3; ++i)
                if (!isProtected()) return 1;
              const WatchedPages first(mapping_.data(), kSize);
              if (!isProtected()) return 2;
              return isStillProtected() ? 0 : 3;
            }).code,
            0);
  EXPECT_EQ(inChild([&] {
              std::vector<WatchedPages> watched;
              {
                const WatchedTogether together;
                watched.emplace_back(mapping_.data(), kSize / 2);
                set([](int) { ::_exit(77); });
                const WatchedTogether inner;
                watched.emplace_back(mapping_.data() + kSize / 2, kSize / 2);
              }
              return isStillProtected() ? 0 : 1;
            }).code,
            0);
}

TEST_F(BusSignalTest, IsLookedAtForEachRangeOfAnotherThread) {
  EXPECT_EQ(inChild([&] {
              const WatchedTogether together;
              const WatchedPages first(mapping_.data(), kSize / 2);
              set([](int) { ::_exit(77); });
              bool isRight = false;
              std::thread([&] { isRight = isProtected(); }).join();
              return isRight ? 0 : 1;
            }).code,
            0);
}

TEST_F(BusSignalTest, RangesThatComeAndGoLeakNothing) {
  EXPECT_EQ(inChild([&] {
              for (int i = 0; i < 1000; ++i)
                if (!isProtected()) return 1;
              return 0;
            }).code,
            0);
}

// Each round leaves the program's own handler installed.
TEST_F(BusSignalTest, HandlersThatComeAndGoLeakNothing) {
  EXPECT_EQ(inChild([&] {
              for (int i = 0; i < 1000; ++i) {
                set(i % 2 == 0 ? [](int) { ++calls; } : [](int) { calls += 1000; });
                if (!isProtected()) return 1;
                ::raise(SIGBUS);
              }
              return calls == 500 + 500'000 ? 0 : 2;
            }).code,
            0);
}

// Faults in memory that is not watched go to the handler that was installed before ours.
TEST_F(LostPagesTest, OtherFaultsGoToTheEarlierHandler) {
  const WatchedPages watched(mapping_.data(), kSize / 2);
  ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
  EXPECT_DEATH(
      { static_cast<void>(*static_cast<volatile uint8_t*>(mapping_.data() + kSize / 2)); }, "");
}

}  // namespace
}  // namespace hearth::memory
