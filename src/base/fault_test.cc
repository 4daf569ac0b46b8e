// SPDX-License-Identifier: Apache-2.0
#include "base/fault.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/descriptor.h"

namespace hearth::base::sys {
namespace {

// Makes each call in an ordinary way, in a folder of the test's own.
class FaultTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "fault_test_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    folder_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    clearFaults();
    fd_.reset(openAt(folder_.get(), "file", O_RDWR | O_CREAT | O_CLOEXEC));
    ASSERT_TRUE(fd_.valid());
  }
  void TearDown() override {
    clearFaults();
    for (const char* name : {"file", "moved", "linked"}) ::unlinkat(folder_.get(), name, 0);
    ::unlinkat(folder_.get(), "made", AT_REMOVEDIR);
    ::rmdir(path_.c_str());
  }
  int file() const { return fd_.get(); }

  std::string path_;
  Descriptor folder_, fd_;
};

TEST_F(FaultTest, WithoutFaultsTheCallsWork) {
  const int folder = folder_.get();
  char text[4] = {};
  EXPECT_EQ(write(file(), "ab", 2), 2);
  EXPECT_EQ(pwrite(file(), "cd", 2, 2), 2);
  EXPECT_EQ(pread(file(), text, 4, 0), 4);
  EXPECT_EQ(std::string(text, 4), "abcd");
  EXPECT_EQ(read(file(), text, 4), 2);
  EXPECT_EQ(fsync(file()), 0);
  EXPECT_EQ(fdatasync(file()), 0);
  EXPECT_EQ(ftruncate(file(), 100), 0);
  EXPECT_EQ(fallocate(file(), 0, 0, 200), 0);
  EXPECT_EQ(linkAt(folder, "file", folder, "linked", 0), 0);
  EXPECT_EQ(renameAt(folder, "file", folder, "moved"), 0);
  EXPECT_EQ(rename((path_ + "/moved").c_str(), (path_ + "/file").c_str()), 0);
  EXPECT_EQ(unlinkAt(folder, "linked", 0), 0);
  EXPECT_EQ(mkdirAt(folder, "made", 0700), 0);
  void* mapped = mmap(nullptr, 4, PROT_READ, MAP_SHARED, file(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(static_cast<char*>(mapped)[3], 'd');
  ::munmap(mapped, 4);
  struct stat status;
  ASSERT_EQ(::fstat(file(), &status), 0);
  EXPECT_EQ(status.st_size, 200);
}

#ifdef HEARTH_TEST_HOOKS

TEST_F(FaultTest, EveryCallFailsWithTheGivenErrorAndDoesNothing) {
  const int folder = folder_.get();
  char text[4];
  for (int call = 0; call < kCallCount; ++call)
    inject({.call = static_cast<Call>(call), .error = EIO, .count = 2});
  const auto failed = [](long result) {
    return result == -1 && std::exchange(errno, 0) == EIO;
  };
  EXPECT_TRUE(failed(open((path_ + "/moved").c_str(), O_CREAT | O_RDWR)));
  EXPECT_TRUE(failed(openAt(folder, "moved", O_CREAT | O_RDWR)));
  EXPECT_TRUE(failed(read(file(), text, 4)));
  EXPECT_TRUE(failed(pread(file(), text, 4, 0)));
  EXPECT_TRUE(failed(write(file(), "ab", 2)));
  EXPECT_TRUE(failed(pwrite(file(), "ab", 2, 0)));
  EXPECT_TRUE(failed(fsync(file())));
  EXPECT_TRUE(failed(fdatasync(file())));
  EXPECT_TRUE(failed(renameAt(folder, "file", folder, "moved")));
  EXPECT_TRUE(failed(linkAt(folder, "file", folder, "linked", 0)));
  EXPECT_TRUE(failed(unlinkAt(folder, "file", 0)));
  EXPECT_TRUE(failed(mkdirAt(folder, "made", 0700)));
  EXPECT_TRUE(failed(ftruncate(file(), 100)));
  EXPECT_TRUE(failed(fallocate(file(), 0, 0, 100)));
  EXPECT_EQ(mmap(nullptr, 4, PROT_READ, MAP_SHARED, file(), 0), MAP_FAILED);
  struct stat status;
  ASSERT_EQ(::fstatat(folder, "file", &status, 0), 0);
  EXPECT_EQ(status.st_size, 0);
  EXPECT_EQ(status.st_nlink, 1u);
  for (const char* name : {"moved", "linked", "made"})
    EXPECT_EQ(::faccessat(folder, name, F_OK, 0), -1) << name;
}

TEST_F(FaultTest, OnlyTheNamedPassesAreHit) {
  inject({.call = Call::kPwrite, .error = ENOSPC, .first = 3, .count = 2});
  std::vector<bool> worked;
  for (int i = 0; i < 6; ++i) worked.push_back(pwrite(file(), "x", 1, i) == 1);
  EXPECT_EQ(worked, (std::vector<bool>{true, true, false, false, true, true}));
  EXPECT_EQ(passes(Call::kPwrite), 6u);
}

TEST_F(FaultTest, AShortWriteWritesHalf) {
  ASSERT_TRUE(injectText("pwrite:short"));
  EXPECT_EQ(pwrite(file(), "abcdef", 6, 0), 3);
  EXPECT_EQ(pwrite(file(), "def", 3, 3), 3);
  char text[6];
  ASSERT_TRUE(injectText("pread:short:1:*"));
  EXPECT_EQ(pread(file(), text, 6, 0), 3);
  EXPECT_EQ(pread(file(), text + 3, 1, 3), 1);
  EXPECT_EQ(std::string(text, 4), "abcd");
}

TEST_F(FaultTest, AStarMeansEveryPassThatFollows) {
  ASSERT_TRUE(injectText("fsync:EIO:2:*,pwrite:EINTR"));
  EXPECT_EQ(fsync(file()), 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(fsync(file()), -1);
  EXPECT_EQ(pwrite(file(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EINTR);
  EXPECT_EQ(pwrite(file(), "x", 1, 0), 1);
}

TEST_F(FaultTest, ConcurrentPassesAreCountedOnce) {
  inject({.call = Call::kFtruncate, .error = EIO, .first = 100, .count = 50});
  std::atomic<int> failures = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (int n = 0; n < 100; ++n) failures += ftruncate(file(), 1) != 0;
      });
  }
  EXPECT_EQ(failures, 50);
}

TEST_F(FaultTest, AForkedChildMakesCallsWhateverItsParentsThreadsDo) {
  inject({.call = Call::kPread, .error = EIO, .first = UINT64_MAX});
  char text = 0;
  const auto call = [&](char* to) {
    static_cast<void>(pread(file(), to, 1, 0));
  };
  std::atomic<bool> isOver = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      char own = 0;
      while (!isOver) call(&own);
    });
  for (int i = 0; i < 300; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      call(&text);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "child " << i;
  }
  isOver = true;
}

TEST_F(FaultTest, TheVariableIsReadAtTheFirstCall) {
  const pid_t child = fork();
  if (child == 0) {
    // Runs a new program, since this one has already read the variable.
    setenv("HEARTH_FAULT", "open:EMFILE:2", 1);
    execl("/proc/self/exe", "fault_test", "--gtest_also_run_disabled_tests",
          "--gtest_filter=*SecondOpenFails", nullptr);
    _exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// Run by the test above, with HEARTH_FAULT set.
TEST(FaultVariable, DISABLED_SecondOpenFails) {
  const Descriptor first(open("/", O_RDONLY));
  EXPECT_TRUE(first.valid());
  EXPECT_EQ(open("/", O_RDONLY), -1);
  EXPECT_EQ(errno, EMFILE);
  const Descriptor third(open("/", O_RDONLY));
  EXPECT_TRUE(third.valid());
}

#endif

TEST(FaultText, BadTextIsRefusedWhole) {
  for (const char* bad :
       {"pwrite", "pwrite:", "pwrite:EFOO", "nocall:EIO", "fsync:short", "pwrite:EIO:0",
        "pwrite:EIO:x", "pwrite:EIO:1:0", "pwrite:EIO:1:1:1", ",", "open:EIO,pwrite:what"}) {
    EXPECT_FALSE(injectText(bad)) << bad;
  }
  const Descriptor descriptor(open("/", O_RDONLY));
  EXPECT_TRUE(descriptor.valid());
}

}  // namespace
}  // namespace hearth::base::sys
