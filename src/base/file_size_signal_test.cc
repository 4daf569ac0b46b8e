// SPDX-License-Identifier: Apache-2.0
#include "base/file_size_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/fault.h"

namespace hearth::base {
namespace {

constexpr rlim_t kLimit = 4096;

// Runs `body` in a child process, which the signal may kill; returns 0 on success.
template <typename Body>
int resultInChild(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{kLimit, kLimit};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(100);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(FileSizeSignalTest, AFileBeyondTheLimitIsAnErrorAndNoSignal) {
  const int result = resultInChild([] {
    const int file = ::memfd_create("hearth-test", MFD_CLOEXEC);
    char byte = 0;
    if (sys::ftruncate(file, kLimit + 1) != -1 || errno != EFBIG) return 1;
    if (sys::pwrite(file, &byte, 1, kLimit) != -1 || errno != EFBIG) return 2;
    if (sys::fallocate(file, 0, 0, kLimit + 1) != -1 || errno != EFBIG) return 3;
    if (::lseek(file, kLimit, SEEK_SET) != kLimit) return 4;
    if (sys::write(file, &byte, 1) != -1 || errno != EFBIG) return 5;
    // No signal is left pending, and the mask is as before.
    sigset_t signals;
    if (::sigpending(&signals) != 0 || sigismember(&signals, SIGXFSZ) != 0) return 6;
    if (::pthread_sigmask(SIG_SETMASK, nullptr, &signals) != 0 ||
        sigismember(&signals, SIGXFSZ) != 0)
      return 7;
    return 0;
  });
  EXPECT_EQ(result, 0);
}

TEST(FileSizeSignalTest, TheProgramsOwnWritesRaiseItAsBefore) {
  const int result = resultInChild([] {
    const int file = ::memfd_create("hearth-test", MFD_CLOEXEC);
    {
      const FileSizeSignalOff outer;
      const FileSizeSignalOff inner;
      (void)::ftruncate(file, kLimit + 1);
    }
    (void)::ftruncate(file, kLimit + 1);
    return 0;
  });
  EXPECT_EQ(result, 1000 + SIGXFSZ);
}

// A program may receive the signal synchronously.
TEST(FileSizeSignalTest, ASignalThatTheProgramBlocksStaysPending) {
  const int result = resultInChild([] {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    const int file = ::memfd_create("hearth-test", MFD_CLOEXEC);
    (void)::ftruncate(file, kLimit + 1);
    if (sys::ftruncate(file, kLimit) != 0) return 1;
    if (::sigpending(&signals) != 0 || sigismember(&signals, SIGXFSZ) != 1) return 2;
    return 0;
  });
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace hearth::base
