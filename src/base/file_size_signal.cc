// SPDX-License-Identifier: Apache-2.0
#include "base/file_size_signal.h"

#include <pthread.h>

#include <cerrno>
#include <ctime>

namespace hearth::base {
namespace {

sigset_t onlyFileSizeSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  return signals;
}

}  // namespace

FileSizeSignalOff::FileSizeSignalOff() noexcept {
  const sigset_t signals = onlyFileSizeSignal();
  sigset_t before;
  wasBlocked_ =
      ::pthread_sigmask(SIG_BLOCK, &signals, &before) != 0 || sigismember(&before, SIGXFSZ) == 1;
}

FileSizeSignalOff::~FileSizeSignalOff() {
  if (wasBlocked_) return;
  const int error = errno;
  const sigset_t signals = onlyFileSizeSignal();
  // The kernel sends the signal to the thread that writes, so one that is pending comes from this
  // scope.
  constexpr timespec kNoTime{};
  while (::sigtimedwait(&signals, nullptr, &kNoTime) < 0 && errno == EINTR) {
  }
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  errno = error;
}

}  // namespace hearth::base
