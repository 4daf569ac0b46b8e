// SPDX-License-Identifier: Apache-2.0
// Loaded before a test program (LD_PRELOAD), this library gives it pages of 64 KiB: sysconf() tells
// of them, and the system calls for memory take and return what a kernel with such pages would.
// They refuse addresses and offsets in the middle of a page, with EINVAL, and round sizes up. What
// files have behind their end in their last page is zeros. The C library's own calls (stacks,
// malloc) are not seen here and keep the kernel's pages.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

namespace {

constexpr size_t kRealPage = 4096;
constexpr size_t kFakedPage = size_t{64} << 10;

bool isInside(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kFakedPage != 0;
}

size_t roundUp(size_t value, size_t to) {
  return (value + to - 1) / to * to;
}

void* failed(int error) {
  errno = error;
  return MAP_FAILED;
}

void* realMmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}

// Addresses that begin where a page does, taken from the kernel; MAP_FAILED where there are none.
void* reserve(size_t size) {
  void* const all = realMmap(nullptr, size + kFakedPage, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return all;
  const auto begin = reinterpret_cast<uintptr_t>(all);
  const uintptr_t aligned = roundUp(begin, kFakedPage);
  if (aligned != begin) ::syscall(SYS_munmap, begin, aligned - begin);
  if (const size_t rest = begin + kFakedPage - aligned; rest != 0)
    ::syscall(SYS_munmap, aligned + size, rest);
  return reinterpret_cast<void*>(aligned);
}

// Between the end of a file, in the kernel's pages, and the end of its last page in ours.
void addZerosBehind(uint8_t* address, size_t size, int protection, int fd, off_t offset) {
  struct stat status;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= offset) return;
  const auto bytes = static_cast<size_t>(status.st_size - offset);
  const size_t begin = roundUp(bytes, kRealPage);
  const size_t end = std::min(size, roundUp(bytes, kFakedPage));
  if (begin < end)
    realMmap(address + begin, end - begin, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0);
}

}  // namespace

#define HEARTH_SEEN __attribute__((visibility("default")))

extern "C" {

HEARTH_SEEN long sysconf(int name) noexcept {
  using Function = long (*)(int);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "sysconf"));
  return name == _SC_PAGESIZE ? static_cast<long>(kFakedPage) : real(name);
}

HEARTH_SEEN int getpagesize() noexcept {
  return static_cast<int>(kFakedPage);
}

HEARTH_SEEN void* mmap(void* address, size_t size, int protection, int flags, int fd,
                       off_t offset) noexcept {
  const bool isFixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
  if (size == 0 || offset % static_cast<off_t>(kFakedPage) != 0 || (isFixed && isInside(address)))
    return failed(EINVAL);
  if (size > SIZE_MAX - 2 * kFakedPage) return failed(ENOMEM);
  size = roundUp(size, kFakedPage);
  void* at = address;
  if (!isFixed) {
    at = reserve(size);
    if (at == MAP_FAILED) return at;
  }
  void* const mapped =
      realMmap(at, size, protection, isFixed ? flags : flags | MAP_FIXED, fd, offset);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    if (!isFixed) ::syscall(SYS_munmap, at, size);
    return failed(error);
  }
  if (fd >= 0 && (flags & MAP_ANONYMOUS) == 0)
    addZerosBehind(static_cast<uint8_t*>(mapped), size, protection, fd, offset);
  return mapped;
}

HEARTH_SEEN void* mmap64(void* address, size_t size, int protection, int flags, int fd,
                         off64_t offset) noexcept {
  return mmap(address, size, protection, flags, fd, offset);
}

HEARTH_SEEN int munmap(void* address, size_t size) noexcept {
  if (isInside(address)) return errno = EINVAL, -1;
  return static_cast<int>(::syscall(SYS_munmap, address, roundUp(size, kFakedPage)));
}

HEARTH_SEEN void* mremap(void* address, size_t size, size_t wanted, int flags, ...) noexcept {
  void* target = nullptr;
  const bool isFixed = (flags & MREMAP_FIXED) != 0;
  if (isFixed) {
    va_list more;
    va_start(more, flags);
    target = va_arg(more, void*);
    va_end(more);
  }
  if (isInside(address) || isInside(target)) return failed(EINVAL);
  size = roundUp(size, kFakedPage);
  wanted = roundUp(wanted, kFakedPage);
  if (!isFixed && (flags & MREMAP_MAYMOVE) != 0) {
    target = reserve(wanted);
    if (target == MAP_FAILED) return target;
    flags |= MREMAP_FIXED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mremap, address, size, wanted, flags, target));
}

HEARTH_SEEN int mprotect(void* address, size_t size, int protection) noexcept {
  if (isInside(address)) return errno = EINVAL, -1;
  return static_cast<int>(::syscall(SYS_mprotect, address, roundUp(size, kFakedPage), protection));
}

HEARTH_SEEN int madvise(void* address, size_t size, int advice) noexcept {
  if (isInside(address)) return errno = EINVAL, -1;
  return static_cast<int>(::syscall(SYS_madvise, address, roundUp(size, kFakedPage), advice));
}

HEARTH_SEEN int mincore(void* address, size_t size, unsigned char* found) noexcept {
  if (isInside(address)) return errno = EINVAL, -1;
  for (size_t offset = 0; offset < size; offset += kFakedPage)
    if (::syscall(SYS_mincore, static_cast<uint8_t*>(address) + offset, kRealPage, found++) != 0)
      return -1;
  return 0;
}

}  // extern "C"
