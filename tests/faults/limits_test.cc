// SPDX-License-Identifier: Apache-2.0
// Limits of the process and of its surroundings: none of them ends the client, and what the weight
// store cannot get is no failure of a model.
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

// A filter that refuses one system call, as containers do.
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
    // Here and not in the children, so that they find it.
    expected_ = inChild([&] { return live(life_).status == HEARTH_OK; }) ? live(life_).result
                                                                         : std::vector<float>();
    ASSERT_FALSE(expected_.empty());
  }

  // Whether the body, in a process of its own, returns true and the process then ends as it should.
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

  // As another device, or another kernel, may round.
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
        // Without threads of the store's own the caller's writes.
        EXPECT_TRUE(inChild([&] {
          if (!limit(RLIMIT_FSIZE, most) || (!hasThreads && !refuse(SYS_clone3))) return false;
          const Outcome cold = live(life_);
          return isRight(cold) && isRight(live(life_));
        }));
        life_.store += "-alone";
      }
      // What it left is whole, or is completed.
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

// The least limit on addresses, to a mebibyte, with which the model runs without a store.
TEST_F(LimitsTest, WhereAModelRunsWithoutAStoreItRunsWithOne) {
  constexpr rlim_t kMebi = rlim_t{1} << 20;
  // Packed weights that are felt.
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
    // At the edge itself it runs or not, as the kernel places its mappings.
    const rlim_t most = enough + (more + 2) * kMebi;
    if (!runs(HEARTH_CACHE_OFF, "", most)) continue;
    for (const hearth_cache_policy cache : kWriting) {
      const std::string store = folder_.path("store" + std::to_string(number++));
      EXPECT_TRUE(runs(cache, store, most)) << "cold";
      EXPECT_TRUE(runs(cache, store, most)) << "again";
    }
  }
}

// Tables and small constants are read where they lie in the model's file.
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
        // Other models go on, and so does this one from a whole file.
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

// For functions called next, where they leave something as they find it.
[[gnu::noinline]] void fillStack(unsigned char byte) {
  volatile unsigned char garbage[256 << 10];
  for (volatile unsigned char& place : garbage) place = byte;
}

TEST_F(LimitsTest, AModelRunsWhereASystemCallIsRefused) {
  if (!inChild([] { return refuse(SYS_sysinfo); })) GTEST_SKIP() << "no seccomp filters";
  life_.cache = HEARTH_CACHE_READ_WRITE;
  life_.store = folder_.path("store");
  for (const long call : {SYS_sysinfo, SYS_sched_getaffinity, SYS_sched_setaffinity,
                          SYS_sched_setscheduler, SYS_getcpu, SYS_madvise, SYS_mincore,
                          SYS_memfd_create, SYS_fallocate, SYS_prlimit64, SYS_getpriority}) {
    SCOPED_TRACE(call);
    // What an unchecked answer holds is chance.
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
