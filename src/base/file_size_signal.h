// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace hearth::base {

// While it lives, what this thread writes beyond the process's limit on the size of files
// (RLIMIT_FSIZE) fails with EFBIG only: the signal that comes with it, SIGXFSZ, would end a program
// that knows nothing of these files. Put it around writes and changes of a file's size; they nest.
// Three system calls.
class FileSizeSignalOff {
 public:
  FileSizeSignalOff() noexcept;
  ~FileSizeSignalOff();
  FileSizeSignalOff(const FileSizeSignalOff&) = delete;
  FileSizeSignalOff& operator=(const FileSizeSignalOff&) = delete;

 private:
  // Where it was blocked before, here or by the program, it may also have been pending.
  bool wasBlocked_ = false;
};

}  // namespace hearth::base
