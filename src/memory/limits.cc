// SPDX-License-Identifier: Apache-2.0
#include "memory/limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string_view>

#include "base/descriptor.h"

namespace hearth::memory {
namespace {

uint64_t limitOf(__rlimit_resource resource) {
  rlimit limit;
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

// The beginning of a file in /proc; empty when it cannot be read.
std::string_view read(const char* path, std::span<char> room) {
  const base::Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file.valid() ? ::read(file.get(), room.data(), room.size() - 1) : -1;
  room[static_cast<size_t>(std::max<ssize_t>(size, 0))] = '\0';
  return room.data();
}

uint64_t left(uint64_t limit, uint64_t used) {
  if (limit == UINT64_MAX) return limit;
  return limit - std::min(limit, used);
}

}  // namespace

uint64_t addressesLeft() {
  const uint64_t all = limitOf(RLIMIT_AS);
  const uint64_t data = limitOf(RLIMIT_DATA);
  if (all == UINT64_MAX && data == UINT64_MAX) return UINT64_MAX;
  char text[256];
  unsigned long long allPages = 0;
  unsigned long long dataPages = 0;
  // Numbers of pages: all, resident, shared, code, libraries, data and stacks.
  if (std::sscanf(read("/proc/self/statm", text).data(), "%llu %*u %*u %*u %*u %llu", &allPages,
                  &dataPages) != 2)
    return 0;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(left(all, allPages * page), left(data, dataPages * page));
}

uint64_t machineMemory() {
  // Not sysconf(): where the system call is refused, it uses memory that was never filled in.
  struct sysinfo info;
  if (::sysinfo(&info) == 0) return uint64_t{info.totalram} * info.mem_unit;
  char text[128];
  unsigned long long kibibytes = 0;
  if (std::sscanf(read("/proc/meminfo", text).data(), "MemTotal: %llu kB", &kibibytes) == 1)
    return uint64_t{kibibytes} << 10;
  return uint64_t{4} << 30;
}

}  // namespace hearth::memory
