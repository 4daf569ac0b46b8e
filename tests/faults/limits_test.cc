// SPDX-License-Identifier: Apache-2.0
// Limits of the process and refused system calls: none may end the client, and a model must not
// fail because the weight store lacks something.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>

#include "client.h"

namespace hearth::faults {
namespace {

constexpr hearth_cache_policy kWriting[] = {HEARTH_CACHE_READ_WRITE, HEARTH_CACHE_STRICT};

// Installs a filter that refuses one system call, as containers do.
bool refuse(long call) {
  const auto number = static_cast<uint32_t>(call);
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

class LimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HEARTH_LOG", "off", 1);
    writeFile(folder_.path("model.tflite"), modelBytes());
    life_.model = folder_.path("model.tflite");
    // Computed here and not in the children, so that all of them have it.
    expected_ = inChild([&] { return live(life_).status == HEARTH_OK; }) ? live(life_).result
                                                                         : std::vector<float>();
    ASSERT_FALSE(expected_.empty());
  }

  // Whether the body, in a child process, returns true and the child then exits normally.
  static bool inChild(const std::function<bool()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool isRight = body();
      std::exit(isRight ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::cerr << "signal " << WTERMSIG(status) << '\n';
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  // The tolerance allows for the rounding of another device or kernel.
  bool isRight(const Outcome& outcome) const {
    if (outcome.status != HEARTH_OK) std::cerr << outcome.status << ": " << outcome.message << '\n';
    return outcome.status == HEARTH_OK &&
           std::ranges::equal(outcome.result, expected_,
                              [](float a, float b) { return std::abs(a - b) < 1e-3f; });
  }

  static bool limit(__rlimit_resource resource, rlim_t value) {
    const rlimit both{value, value};
    return ::setrlimit(resource, &both) == 0;
  }

  Folder folder_;
  Life life_;
  std::vector<float> expected_;
};

TEST_F(LimitsTest, NoFileOfTheStoreEndsTheProcessBySigxfsz) {
  for (const hearth_cache_policy cache : kWriting) {
    int number = 0;
    for (const rlim_t most : {rlim_t{0}, rlim_t{100}, rlim_t{4096}, rlim_t{300} << 10,
                              rlim_t{1} << 20, rlim_t{4} << 20}) {
      SCOPED_TRACE(most);
      life_.cache = cache;
      life_.store = folder_.path("store" + std::to_string(cache) + std::to_string(number++));
      for (const bool hasThreads : {true, false}) {
        // Without threads of its own, the store writes on the calling thread.
        EXPECT_TRUE(inChild([&] {
          if (!limit(RLIMIT_FSIZE, most) || (!hasThreads && !refuse(SYS_clone3))) return false;
          const Outcome cold = live(life_);
          return isRight(cold) && isRight(live(life_));
        }));
        life_.store += "-alone";
      }
      // What the limit cut off must be complete, or be completed by the next start.
      EXPECT_TRUE(inChild([&] { return isRight(live(life_)); }));
    }
  }
}

TEST_F(LimitsTest, NoReportOrTraceEndsTheProcessBySigxfsz) {
  for (const rlim_t most : {rlim_t{0}, rlim_t{200}}) {
    EXPECT_TRUE(inChild([&] {
      ::setenv("HEARTH_REPORT", folder_.path("report").c_str(), 1);
      ::setenv("HEARTH_TRACE", folder_.path("trace").c_str(), 1);
      return limit(RLIMIT_FSIZE, most) && isRight(live(life_));
    }));
  }
}

// Finds the lowest limit on address space, to a mebibyte, under which the model runs without a
// store.
TEST_F(LimitsTest, WhereAModelRunsWithoutAStoreItRunsWithOne) {
  constexpr rlim_t kMebi = rlim_t{1} << 20;
  // The packed weights must be large compared with the rest.
  writeFile(life_.model, modelBytes(1536));
  ASSERT_TRUE(inChild([&] { return live(life_).status == HEARTH_OK; }));
  const auto runs = [&](hearth_cache_policy cache, const std::string& store, rlim_t most) {
    Life life = life_;
    life.cache = cache;
    life.store = store;
    return inChild([&] { return limit(RLIMIT_AS, most) && live(life).status == HEARTH_OK; });
  };
  rlim_t tooLittle = kMebi;
  rlim_t enough = 4096 * kMebi;
  ASSERT_TRUE(runs(HEARTH_CACHE_OFF, "", enough));
  while (enough - tooLittle > kMebi) {
    const rlim_t middle = (tooLittle + enough) / 2;
    (runs(HEARTH_CACHE_OFF, "", middle) ? enough : tooLittle) = middle;
  }
  int number = 0;
  for (const rlim_t more : {0, 3, 6, 9, 12, 20, 40, 80, 200, 1000, 3000}) {
    SCOPED_TRACE(more);
    // Close to the limit it depends on the kernel's placement of mappings whether the model runs.
    const rlim_t most = enough + (more + 2) * kMebi;
    if (!runs(HEARTH_CACHE_OFF, "", most)) continue;
    for (const hearth_cache_policy cache : kWriting) {
      const std::string store = folder_.path("store" + std::to_string(number++));
      EXPECT_TRUE(runs(cache, store, most)) << "cold";
      EXPECT_TRUE(runs(cache, store, most)) << "again";
    }
  }
}

// Tables and small constants are read from the mapping of the model's file.
TEST_F(LimitsTest, AModelFileThatIsTruncatedWhileInUseIsAnErrorOfTheRun) {
  const std::string whole = life_.model;
  life_.model = folder_.path("truncated.tflite");
  for (const char* device : {"hearth-cpu", "nnapi-reference"}) {
    for (const hearth_preparation preparation :
         {HEARTH_PREPARE_WHOLE, HEARTH_PREPARE_JUST_IN_TIME}) {
      SCOPED_TRACE(device);
      life_.device = device;
      life_.preparation = preparation;
      EXPECT_TRUE(inChild([&] {
        std::filesystem::copy_file(whole, life_.model,
                                   std::filesystem::copy_options::overwrite_existing);
        const Outcome outcome = live(life_, [&] { std::filesystem::resize_file(life_.model, 0); });
        if (outcome.status != HEARTH_OP_FAILED ||
            outcome.message.find("was truncated") == std::string::npos) {
          std::cerr << outcome.status << ": " << outcome.message << '\n';
          return false;
        }
        // Other models are not affected, nor is this one if it is loaded from a complete file.
        std::filesystem::copy_file(whole, life_.model,
                                   std::filesystem::copy_options::overwrite_existing);
        return isRight(live(life_));
      }));
    }
  }
}

TEST_F(LimitsTest, WithoutThreadsAModelRunsWithAStore) {
  if (!inChild([] { return refuse(SYS_clone3); })) GTEST_SKIP() << "no seccomp filters";
  life_.cache = HEARTH_CACHE_READ_WRITE;
  for (const hearth_preparation preparation : {HEARTH_PREPARE_WHOLE, HEARTH_PREPARE_JUST_IN_TIME}) {
    life_.preparation = preparation;
    life_.store = folder_.path("store" + std::to_string(preparation));
    for (const char* start : {"cold", "warm"}) {
      SCOPED_TRACE(start);
      EXPECT_TRUE(inChild([&] { return refuse(SYS_clone3) && isRight(live(life_)); }));
    }
  }
}

// Fills the stack for functions that are called next: one that leaves a variable unset is noticed.
[[gnu::noinline]] void fillStack(unsigned char byte) {
  volatile unsigned char garbage[256 << 10];
  for (volatile unsigned char& place : garbage) place = byte;
}

TEST_F(LimitsTest, AModelRunsWhereASystemCallIsRefused) {
  if (!inChild([] { return refuse(SYS_sysinfo); })) GTEST_SKIP() << "no seccomp filters";
  life_.cache = HEARTH_CACHE_READ_WRITE;
  life_.store = folder_.path("store");
  for (const long call :
       {SYS_sysinfo, SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_setscheduler,
        SYS_getcpu, SYS_madvise, SYS_mincore, SYS_memfd_create, SYS_fallocate, SYS_prlimit64,
        SYS_getpriority, SYS_statx}) {
    SCOPED_TRACE(call);
    // A function that ignores an error would use whatever the memory happens to hold.
    for (const unsigned char byte : {0, 1, 255})
      EXPECT_TRUE(inChild([&] {
        if (!refuse(call)) return false;
        fillStack(byte);
        return isRight(live(life_));
      }));
  }
}

}  // namespace
}  // namespace hearth::faults
