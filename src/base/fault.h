// SPDX-License-Identifier: Apache-2.0
// The system calls on which the safety of files depends, as functions of the same names that a test
// can make fail. Without HEARTH_TEST_HOOKS they only make the calls.
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

// Makes a call fail with `error`; or, for a read or write with error 0, asks for only half of its
// bytes (at least one). Passes are counted from 1, beginning when the fault is set.
struct Fault {
  Call call;
  int error = 0;
  uint64_t first = 1;  // the first pass that is hit
  uint64_t count = 1;  // how many passes in a row; UINT64_MAX = all from there on
};

// Adds a fault to those that are set. The first use of this or of a call below also sets those of
// HEARTH_FAULT. Does nothing without HEARTH_TEST_HOOKS. Thread-safe, like all functions below.
void inject(const Fault& fault);
// Removes all faults, those of HEARTH_FAULT included, and resets all counts.
void clearFaults();
// How often a call was passed since the last clearFaults(), hit or not.
uint64_t passes(Call call);
// Parses "CALL:FAULT[:FIRST[:COUNT]]", or several of these separated by commas, for example
// "pwrite:ENOSPC:3" or "pwrite:short,fsync:EIO:1:*", and injects all. FAULT is ENOSPC, EDQUOT, EIO,
// EINTR, EACCES, EROFS, ENOMEM, EMFILE, ENOENT or short; COUNT may be *. Error: kBadData for an
// invalid text; no fault is then set.
Status injectText(std::string_view text);

// Like the system calls of these names: -1 (MAP_FAILED) and errno on failure. `open` and openAt
// count as the same call, and so do `rename` and renameAt. Exceeding RLIMIT_FSIZE raises no signal.
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
