// SPDX-License-Identifier: Apache-2.0
#include "base/fault.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/file_size_signal.h"
#include "base/immortal.h"
#include "base/log.h"
#include "base/mutex.h"

namespace hearth::base::sys {
namespace {

constexpr std::pair<std::string_view, int> kErrors[] = {
    {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EIO", EIO},       {"EINTR", EINTR},
    {"EACCES", EACCES}, {"EROFS", EROFS},   {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE},
    {"ENOENT", ENOENT}, {"short", 0},
};

constexpr std::array<std::string_view, kCallCount> kCalls = {
    "open", "read",   "pread", "write",     "pwrite",    "fsync", "rename",
    "link", "unlink", "mkdir", "ftruncate", "fallocate", "mmap"};

constexpr bool canBeShort(Call call) {
  return call == Call::kRead || call == Call::kPread || call == Call::kWrite ||
         call == Call::kPwrite;
}

// Cuts the text before the first `separator` from `rest` and returns it.
std::string_view take(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

Result<uint64_t> parsePasses(std::string_view text) {
  if (text == "*") return UINT64_MAX;
  HEARTH_ASSIGN(const int64_t value, parseInteger("A count in a fault", text, 1, INT64_MAX));
  return static_cast<uint64_t>(value);
}

Result<Fault> parseFault(std::string_view text) {
  std::string_view rest = text;
  const auto call = std::ranges::find(kCalls, take(rest, ':'));
  if (call == kCalls.end())
    return fail(ErrorCode::kBadData, "The fault \"{}\" names no call that can fail.", text);
  Fault fault{.call = static_cast<Call>(call - kCalls.begin())};
  const std::string_view name = take(rest, ':');
  const auto* error = std::ranges::find(kErrors, name, &std::pair<std::string_view, int>::first);
  if (error == std::end(kErrors) || (error->second == 0 && !canBeShort(fault.call)))
    return fail(ErrorCode::kBadData, "The fault \"{}\" has no failure that the call can have.",
                text);
  fault.error = error->second;
  if (!rest.empty()) {
    HEARTH_ASSIGN(fault.first, parsePasses(take(rest, ':')));
  }
  if (!rest.empty()) {
    HEARTH_ASSIGN(fault.count, parsePasses(take(rest, ':')));
  }
  if (!rest.empty())
    return fail(ErrorCode::kBadData, "The fault \"{}\" has more than four parts.", text);
  return fault;
}

Result<std::vector<Fault>> parseFaults(std::string_view text) {
  std::vector<Fault> faults;
  for (std::string_view rest = text; !rest.empty();) {
    HEARTH_ASSIGN(const Fault fault, parseFault(take(rest, ',')));
    faults.push_back(fault);
  }
  return faults;
}

}  // namespace

#ifdef HEARTH_TEST_HOOKS
namespace {

struct Table {
  struct Entry {
    Fault fault;
    uint64_t passes = 0;
  };
  Mutex mutex;
  std::vector<Entry> entries;
  bool environmentRead = false;
};

// Never destroyed, since static destructors make calls, too; and whole in a forked child, whatever
// calls the parent's threads were making.
Table& table() {
  static constinit Immortal<Table> instance;
  return instance.get();
}

std::array<std::atomic<uint64_t>, kCallCount> passCounts;
// False while no fault is set; a call then costs two atomic operations.
std::atomic<bool> mayHit = true;

// Called under the table's lock.
void readEnvironment(Table& faults) {
  if (std::exchange(faults.environmentRead, true)) return;
  const Result<std::vector<Fault>> parsed = parseFaults(envString(Env::kFault));
  if (!parsed)
    logWarn("HEARTH_FAULT is ignored. {}", parsed.error().toString());
  else
    for (const Fault& fault : *parsed) faults.entries.push_back({fault});
}

enum class Hit { kNone, kError, kShort };

// Counts a pass; sets errno with kError.
Hit pass(Call call) {
  passCounts[static_cast<size_t>(call)].fetch_add(1, std::memory_order_relaxed);
  if (!mayHit.load(std::memory_order_relaxed)) [[likely]]
    return Hit::kNone;
  Table& faults = table();
  const std::lock_guard lock(faults.mutex);
  readEnvironment(faults);
  if (faults.entries.empty()) mayHit = false;
  Hit hit = Hit::kNone;
  for (Table::Entry& entry : faults.entries) {
    if (entry.fault.call != call) continue;
    const uint64_t passed = ++entry.passes;
    if (hit != Hit::kNone || passed < entry.fault.first ||
        passed - entry.fault.first >= entry.fault.count)
      continue;
    hit = entry.fault.error == 0 ? Hit::kShort : Hit::kError;
    if (hit == Hit::kError) errno = entry.fault.error;
  }
  return hit;
}

bool fails(Call call) {
  return pass(call) == Hit::kError;
}

// Returns true when the call fails; may halve `size`.
bool fails(Call call, size_t& size) {
  const Hit hit = pass(call);
  if (hit == Hit::kShort && size > 1) size /= 2;
  return hit == Hit::kError;
}

}  // namespace

void inject(const Fault& fault) {
  Table& faults = table();
  const std::lock_guard lock(faults.mutex);
  readEnvironment(faults);
  faults.entries.push_back({fault});
  mayHit = true;
}

void clearFaults() {
  Table& faults = table();
  const std::lock_guard lock(faults.mutex);
  faults.environmentRead = true;
  faults.entries.clear();
  mayHit = false;
  for (std::atomic<uint64_t>& count : passCounts) count = 0;
}

uint64_t passes(Call call) {
  return passCounts[static_cast<size_t>(call)];
}

#else

namespace {
constexpr bool fails(Call) {
  return false;
}
constexpr bool fails(Call, size_t&) {
  return false;
}
}  // namespace

void inject(const Fault&) {}
void clearFaults() {}
uint64_t passes(Call) {
  return 0;
}

#endif

Status injectText(std::string_view text) {
  HEARTH_ASSIGN(const std::vector<Fault> faults, parseFaults(text));
  for (const Fault& fault : faults) inject(fault);
  return {};
}

int openAt(int folder, const char* path, int flags, mode_t mode) {
  return fails(Call::kOpen) ? -1 : ::openat(folder, path, flags, mode);
}

int open(const char* path, int flags, mode_t mode) {
  return openAt(AT_FDCWD, path, flags, mode);
}

ssize_t read(int fd, void* data, size_t size) {
  return fails(Call::kRead, size) ? -1 : ::read(fd, data, size);
}

ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  return fails(Call::kPread, size) ? -1 : ::pread(fd, data, size, offset);
}

ssize_t write(int fd, const void* data, size_t size) {
  const FileSizeSignalOff signalOff;
  return fails(Call::kWrite, size) ? -1 : ::write(fd, data, size);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  const FileSizeSignalOff signalOff;
  return fails(Call::kPwrite, size) ? -1 : ::pwrite(fd, data, size, offset);
}

int fsync(int fd) {
  return fails(Call::kFsync) ? -1 : ::fsync(fd);
}

int fdatasync(int fd) {
  return fails(Call::kFsync) ? -1 : ::fdatasync(fd);
}

int rename(const char* from, const char* to) {
  return renameAt(AT_FDCWD, from, AT_FDCWD, to);
}

int renameAt(int fromFolder, const char* from, int toFolder, const char* to) {
  return fails(Call::kRename) ? -1 : ::renameat(fromFolder, from, toFolder, to);
}

int linkAt(int fromFolder, const char* from, int toFolder, const char* to, int flags) {
  return fails(Call::kLink) ? -1 : ::linkat(fromFolder, from, toFolder, to, flags);
}

int unlinkAt(int folder, const char* path, int flags) {
  return fails(Call::kUnlink) ? -1 : ::unlinkat(folder, path, flags);
}

int mkdirAt(int folder, const char* path, mode_t mode) {
  return fails(Call::kMkdir) ? -1 : ::mkdirat(folder, path, mode);
}

int ftruncate(int fd, off_t size) {
  const FileSizeSignalOff signalOff;
  return fails(Call::kFtruncate) ? -1 : ::ftruncate(fd, size);
}

int fallocate(int fd, int mode, off_t offset, off_t size) {
  const FileSizeSignalOff signalOff;
  return fails(Call::kFallocate) ? -1 : ::fallocate(fd, mode, offset, size);
}

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  return fails(Call::kMmap) ? MAP_FAILED : ::mmap(address, size, protection, flags, fd, offset);
}

}  // namespace hearth::base::sys
