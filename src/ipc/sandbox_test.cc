// SPDX-License-Identifier: Apache-2.0
#include "ipc/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/helper_thread.h"
#include "ipc/sandbox_test_util.h"

namespace hearth::ipc {
namespace {

// A kernel without a call is imitated by a filter.
std::string hide(uint32_t number) {
  std::array<sock_filter, 4> steps{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{.len = steps.size(), .filter = steps.data()};
  const bool isHidden = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
  return isHidden ? "" : "The call cannot be hidden.";
}

class SandboxTest : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_SKIP_SANDBOX();
    if (!hasCallFilters()) GTEST_SKIP() << "The kernel filters no system calls.";
  }

  SandboxRules rules(SandboxMode mode = SandboxMode::kOn) const {
    return {.mode = mode, .files = {.readWrite = {folder_.path()}}};
  }
  // Lets a child enter a sandbox before it calls `run`.
  static void inside(const SandboxRules& rules, const std::function<void(Findings&)>& run) {
    const bool hasLandlock = Landlock::version() > 0;
    expectWellInChild([&] {
      const Result<SandboxState> state = enterSandbox(rules);
      if (!state) return state.error().toString();
      Findings findings;
      findings.holds("calls are filtered", state->filtersCalls);
      findings.holds("files are restricted", state->restrictsFiles == hasLandlock);
      run(findings);
      return findings.text();
    });
  }

  const TestFolder folder_;
};

TEST_F(SandboxTest, ModesHaveNames) {
  EXPECT_EQ(parseSandboxMode("off").value(), SandboxMode::kOff);
  EXPECT_EQ(parseSandboxMode("on").value(), SandboxMode::kOn);
  EXPECT_EQ(parseSandboxMode("require").value(), SandboxMode::kRequire);
  EXPECT_EQ(parseSandboxMode("maybe").error().message(),
            "The mode of the sandbox is \"maybe\", which is none of off|on|require.");
}

TEST_F(SandboxTest, OffGivesNothingUp) {
  expectWellInChild([&] {
    const Result<SandboxState> state = enterSandbox(rules(SandboxMode::kOff));
    if (!state) return state.error().toString();
    Findings findings;
    findings.holds("nothing is restricted", !state->restrictsFiles && !state->filtersCalls);
    findings.holds("it says so", state->gaps == std::vector<std::string>{"The sandbox is off."});
    findings.works("socket", ::socket(AF_UNIX, SOCK_STREAM, 0));
    findings.works("/etc/passwd", ::open("/etc/passwd", O_RDONLY | O_CLOEXEC));
    return findings.text();
  });
}

TEST_F(SandboxTest, RestrictsFilesAndCalls) {
  if (Landlock::version() < 3) GTEST_SKIP() << "The kernel has no Landlock, or an early one.";
  inside(rules(SandboxMode::kRequire), [&](Findings& findings) {
    findings.works("a file", ::open(folder_.path("x").c_str(), O_RDWR | O_CREAT, 0600));
    findings.fails("/etc/passwd", ::open("/etc/passwd", O_RDONLY | O_CLOEXEC), EACCES);
    findings.fails("socket", ::socket(AF_UNIX, SOCK_STREAM, 0), EPERM);
    findings.holds("there is no core file", [] {
      rlimit limit{};
      return ::getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max <= 1;
    }());
  });
}

// Drivers start threads when they start.
TEST_F(SandboxTest, HoldsForThreadsThatRunAlready) {
  if (Landlock::version() == 0) GTEST_SKIP() << "The kernel has no Landlock.";
  expectWellInChild([&] {
    constexpr int kThreads = 5;
    std::atomic<bool> isOver = false;
    std::atomic<int> restricted = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      const auto run = [&] {
        // Some sleep, some start others meanwhile.
        while (!isOver) {
          std::thread([] {}).join();
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        const bool isRefused = ::open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES &&
                               ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
                               ::socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM;
        if (isRefused) ++restricted;
      };
      threads.push_back(i % 2 == 0 ? base::startHelperThread("hearth-test", run)
                                   : std::thread(run));
    }
    const Result<SandboxState> state = enterSandbox(rules());
    isOver = true;
    for (std::thread& thread : threads) thread.join();
    if (!state) return state.error().toString();
    return restricted == kThreads ? std::string()
                                  : std::to_string(restricted) + " threads are restricted.";
  });
}

TEST_F(SandboxTest, AThreadThatTakesNoSignalIsNamed) {
  if (Landlock::version() == 0) GTEST_SKIP() << "The kernel has no Landlock.";
  const ChildEnd end = inChild([&] {
    std::atomic<bool> isBlocked = false;
    std::atomic<bool> isOver = false;
    std::thread thread([&] {
      sigset_t all;
      sigfillset(&all);
      ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
      isBlocked = true;
      while (!isOver) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    while (!isBlocked) std::this_thread::yield();
    const Result<SandboxState> state = enterSandbox(rules());
    isOver = true;
    thread.join();
    return state ? std::string("It is restricted.") : state.error().message();
  });
  EXPECT_TRUE(end.text.ends_with("blocks SIGSYS and so cannot be restricted.")) << end.text;
}

TEST_F(SandboxTest, AKernelWithoutLandlockIsAGapOrAnError) {
  expectWellInChild([&] {
    if (std::string problem = hide(SYS_landlock_create_ruleset); !problem.empty()) return problem;
    Findings findings;
    const Result<SandboxState> required = enterSandbox(rules(SandboxMode::kRequire));
    findings.holds("it is an error", !required);
    if (required) return findings.text();
    findings.holds("of its kind", required.error().code() == ErrorCode::kUnsupported);
    findings.holds("with a reason",
                   required.error().message() ==
                       "The sandbox is required and not complete. The kernel has no Landlock, or "
                       "it is disabled: files are bounded by the rights of the user only.");
    const Result<SandboxState> state = enterSandbox(rules());
    if (!state) return state.error().toString();
    findings.holds("the rest is done", state->filtersCalls && !state->restrictsFiles);
    findings.holds("the gap is told", state->gaps.size() == 1);
    findings.works("/etc/passwd", ::open("/etc/passwd", O_RDONLY | O_CLOEXEC));
    findings.fails("socket", ::socket(AF_UNIX, SOCK_STREAM, 0), EPERM);
    return findings.text();
  });
}

TEST_F(SandboxTest, AKernelWithoutFiltersIsAGapOrAnError) {
  expectWellInChild([&] {
    if (std::string problem = hide(SYS_seccomp); !problem.empty()) return problem;
    Findings findings;
    const Result<SandboxState> state = enterSandbox(rules());
    if (!state) return state.error().toString();
    findings.holds("calls are not filtered", !state->filtersCalls);
    findings.holds("the gap is told", !state->gaps.empty());
    findings.works("socket", ::socket(AF_UNIX, SOCK_STREAM, 0));
    findings.holds("new privileges are forbidden", ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
    return findings.text();
  });
  const ChildEnd required = inChild([&] {
    if (std::string problem = hide(SYS_seccomp); !problem.empty()) return problem;
    const Result<SandboxState> state = enterSandbox(rules(SandboxMode::kRequire));
    return state ? std::string() : std::string(base::errorCodeName(state.error().code()));
  });
  EXPECT_EQ(required.text, "UNSUPPORTED");
}

TEST_F(SandboxTest, LimitsHold) {
  SandboxRules limited = rules();
  limited.limits = {.descriptors = 40, .threads = 1000};
#ifndef __SANITIZE_ADDRESS__
  limited.limits.addressSpace = uint64_t{1} << 30;
#endif
  inside(limited, [&](Findings& findings) {
    int last = 0;
    for (int i = 0; i < 40 && last >= 0; ++i) last = ::memfd_create("sandbox-test", MFD_CLOEXEC);
    findings.fails("the descriptor beyond the limit", last, EMFILE);
    rlimit limit{};
    findings.works("getrlimit", ::getrlimit(RLIMIT_NPROC, &limit));
    findings.holds("threads are limited", limit.rlim_cur <= 1000 && limit.rlim_max <= 1000);
    const rlimit more{41, 41};
    findings.fails("raising a limit", ::setrlimit(RLIMIT_NOFILE, &more), EPERM);
#ifndef __SANITIZE_ADDRESS__
    void* const memory =
        ::mmap(nullptr, size_t{2} << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    findings.holds("addresses are limited", memory == MAP_FAILED && errno == ENOMEM);
#endif
  });
}

// Root's threads are not counted, so a child becomes another user.
TEST_F(SandboxTest, AUserOfItsOwnGetsNoMoreThreads) {
  if (::geteuid() != 0) GTEST_SKIP() << "Only root can become another user.";
  const ChildEnd end = inChild([&] {
    constexpr uid_t kNobody = 65534;
    if (::setresuid(kNobody, kNobody, kNobody) != 0) return std::string("no user");
    SandboxRules limited = rules();
    limited.limits.threads = 1;
    const Result<SandboxState> state = enterSandbox(limited);
    if (!state) return state.error().toString();
    pthread_t thread;
    const int error =
        ::pthread_create(&thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
    return std::string(error == EAGAIN ? "refused" : "started");
  });
  if (end.text == "no user") GTEST_SKIP() << "There is no other user in this name space.";
  EXPECT_EQ(end.text, "refused");
}

// In both of its journals; the store uses the first.
TEST_F(SandboxTest, ADatabaseWorks) {
  inside(rules(), [&](Findings& findings) {
    for (const char* const journal : {"delete", "wal"}) {
      sqlite3* database = nullptr;
      const std::string path = folder_.path(std::string(journal) + ".sqlite");
      const auto execute = [&](const std::string& text) {
        findings.holds(text.c_str(), sqlite3_exec(database, text.c_str(), nullptr, nullptr,
                                                  nullptr) == SQLITE_OK);
      };
      findings.holds("it opens", sqlite3_open(path.c_str(), &database) == SQLITE_OK);
      execute("PRAGMA journal_mode=" + std::string(journal));
      execute("CREATE TABLE t (x)");
      execute("BEGIN");
      for (int i = 0; i < 100; ++i) execute("INSERT INTO t VALUES (" + std::to_string(i) + ")");
      execute("COMMIT");
      execute("VACUUM");
      int sum = 0;
      const auto take = [](void* to, int, char** values, char**) {
        *static_cast<int*>(to) = std::stoi(values[0]);
        return 0;
      };
      sqlite3_exec(database, "SELECT sum(x) FROM t", take, &sum, nullptr);
      findings.holds("the sum is right", sum == 4950);
      findings.holds("it closes", sqlite3_close(database) == SQLITE_OK);
    }
  });
}

TEST_F(SandboxTest, FilesOfTheSystemCanBeRead) {
  SandboxRules withSystem = rules();
  withSystem.files.readOnly = systemFilesToRead();
  inside(withSystem, [&](Findings& findings) {
    for (const char* const path : {"/proc/self/statm", "/proc/meminfo", "/proc/self/status"})
      findings.holds(path, std::ifstream(path).get() != EOF);
  });
  EXPECT_FALSE(withSystem.files.readOnly.empty());
}

TEST_F(SandboxTest, AWrongPathIsAnErrorInAllModesThatRestrict) {
  if (Landlock::version() == 0) GTEST_SKIP() << "The kernel has no Landlock.";
  const ChildEnd end = inChild([&] {
    SandboxRules wrong = rules();
    wrong.files.readOnly = {folder_.path("missing")};
    const Result<SandboxState> state = enterSandbox(wrong);
    return state ? std::string() : std::string(base::errorCodeName(state.error().code()));
  });
  EXPECT_EQ(end.text, "NOT_FOUND");
}

}  // namespace
}  // namespace hearth::ipc
