// SPDX-License-Identifier: Apache-2.0
// The system calls on which the safety of what is on disk depends, behind functions of the same
// name that a test can make fail. Without HEARTH_TEST_HOOKS they are the calls themselves.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hearth::base::sys {

enum class Call : int {
  kOpen,
  kRead,
  kPread,
  kWrite,
  kPwrite,
  kFsync,
  kRename,
  kLink,
  kUnlink,
  kMkdir,
  kFtruncate,
  kFallocate,
  kMmap,
};
inline constexpr int kCallCount = static_cast<int>(Call::kMmap) + 1;

// What happens to a call: it fails with `error`, or, for reads and writes with error 0, it is asked
// for half of its bytes only (at least one). Passes are counted from 1, from when the fault is set.
struct Fault {
  Call call;
  int error = 0;
  uint64_t first = 1;  // the first pass hit
  uint64_t count = 1;  // how many passes in a row, UINT64_MAX = all that follow
};

// Sets a fault in addition to those that stand. They count from HEARTH_FAULT at the first call on.
// Without HEARTH_TEST_HOOKS nothing happens. Thread-safe, as is all below.
void inject(const Fault& fault);
// Takes back all faults, HEARTH_FAULT's included, and starts all counts anew.
void clearFaults();
// How often a call was passed since the last clearFaults, hit or not.
uint64_t passes(Call call);
// Reads "CALL:FAULT[:FIRST[:COUNT]]", with several separated by commas, for example
// "pwrite:ENOSPC:3" or "pwrite:short,fsync:EIO:1:*", and injects all. FAULT is ENOSPC, EDQUOT, EIO,
// EINTR, EACCES, EROFS, ENOMEM, EMFILE, ENOENT or short; COUNT may be *. Bad text: kBadData, none
// set.
Status injectText(std::string_view text);

// As the system calls of these names: -1 (MAP_FAILED) and errno on failure. `open`, `rename` and
// those with a folder descriptor count as one call each (openat counts as open). No signal is
// raised where RLIMIT_FSIZE is exceeded.
int openAt(int folder, const char* path, int flags, mode_t mode = 0600);
int open(const char* path, int flags, mode_t mode = 0600);
ssize_t read(int fd, void* data, size_t size);
ssize_t pread(int fd, void* data, size_t size, off_t offset);
ssize_t write(int fd, const void* data, size_t size);
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset);
int fsync(int fd);
int fdatasync(int fd);
int rename(const char* from, const char* to);
int renameAt(int fromFolder, const char* from, int toFolder, const char* to);
int linkAt(int fromFolder, const char* from, int toFolder, const char* to, int flags);
int unlinkAt(int folder, const char* path, int flags);
int mkdirAt(int folder, const char* path, mode_t mode);
int ftruncate(int fd, off_t size);
int fallocate(int fd, int mode, off_t offset, off_t size);
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset);

}  // namespace hearth::base::sys
