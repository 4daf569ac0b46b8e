// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace hearth::base {

// While this exists, writing beyond the process's limit on file sizes (RLIMIT_FSIZE) fails on this
// thread with EFBIG only. The signal that comes with it, SIGXFSZ, would end a program that knows
// nothing of these files. To be put around writes and changes of a file's size; may be nested.
// Costs three system calls.
class FileSizeSignalOff {
 public:
  FileSizeSignalOff() noexcept;
  ~FileSizeSignalOff();
  FileSizeSignalOff(const FileSizeSignalOff&) = delete;
  FileSizeSignalOff& operator=(const FileSizeSignalOff&) = delete;

 private:
  // If the signal was blocked before, here or by the program, it may also have been pending.
  bool wasBlocked_ = false;
};

}  // namespace hearth::base
