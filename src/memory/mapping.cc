// SPDX-License-Identifier: Apache-2.0
#include "memory/mapping.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/format.h"
#include "memory/page_size.h"

namespace hearth::memory {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

bool isDmaBuf(int fd) {
  struct statfs status;
  return ::fstatfs(fd, &status) == 0 && status.f_type == DMA_BUF_MAGIC;
}

std::optional<uint64_t> mappableSize(int fd) {
  struct stat status;
  // Includes memfd and shm files.
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
    return static_cast<uint64_t>(status.st_size);
  if (!isDmaBuf(fd)) return std::nullopt;
  const off_t end = ::lseek(fd, 0, SEEK_END);
  if (end < 0) return std::nullopt;
  return static_cast<uint64_t>(end);
}

Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      length_(std::exchange(other.length_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(length_, other.length_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, length_);
}

Result<Mapping> Mapping::ofFile(int fd, uint64_t offset, size_t size, Access access) {
  if (size == 0) return fail(ErrorCode::kBadData, "A mapping of 0 bytes is asked for.");
  const std::optional<uint64_t> fileSize = mappableSize(fd);
  if (fileSize && (offset > *fileSize || size > *fileSize - offset))
    return fail(ErrorCode::kBadData,
                "The range of {} bytes at offset {} is outside the file, which has {} bytes.", size,
                offset, *fileSize);
  const size_t page = pageSize();
  const size_t head = static_cast<size_t>(offset % page);
  if (size > std::numeric_limits<size_t>::max() / 2 - 2 * kHugePage)
    return fail(ErrorCode::kOutOfMemory, "A mapping of {} bytes is too large.", size);
  const size_t body = (head + size + page - 1) / page * page;
  // The kernel maps large folios of the page cache only where address and offset are aligned alike.
  const bool isHuge = size >= kHugePage && offset % kHugePage == 0;
  const size_t slack = isHuge ? kHugePage : 0;
  // Reserves one page more than the file part and maps the file over the front: the last page stays
  // readable zeros whatever comes after it.
  const size_t length = body + page + slack;
  void* reserved =
      ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    return std::unexpected(base::errnoError(errno, base::formatText("Reserving {} bytes", length)));
  Mapping mapping;
  mapping.base_ = reserved;
  mapping.length_ = length;
  if (isHuge) {
    const auto address = reinterpret_cast<uintptr_t>(reserved);
    reserved = reinterpret_cast<void*>((address + kHugePage - 1) / kHugePage * kHugePage);
  }
  const int protection = access == Access::kReadWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  if (::mmap(reserved, body, protection, MAP_SHARED | MAP_FIXED, fd,
             static_cast<off_t>(offset - head)) == MAP_FAILED)
    return std::unexpected(
        base::errnoError(errno, base::formatText("Mapping {} bytes at offset {}", size, offset)));
  mapping.data_ = static_cast<uint8_t*>(reserved) + head;
  mapping.size_ = size;
  return mapping;
}

Result<Mapping> Mapping::insideFile(int fd, uint64_t offset, size_t size) {
  const size_t page = pageSize();
  const size_t head = static_cast<size_t>(offset % page);
  if (size == 0 || size > std::numeric_limits<size_t>::max() / 2 - 2 * kHugePage)
    return ofFile(fd, offset, size, Access::kReadOnly);
  const size_t length = (head + size + kReadableBehind + page - 1) / page * page;
  void* const base =
      ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset - head));
  if (base == MAP_FAILED)
    return std::unexpected(
        base::errnoError(errno, base::formatText("Mapping {} bytes at offset {}", size, offset)));
  Mapping mapping;
  mapping.base_ = base;
  mapping.length_ = length;
  mapping.data_ = static_cast<uint8_t*>(base) + head;
  mapping.size_ = size;
  // Most file systems align such a mapping themselves.
  const bool isHuge = size >= kHugePage && offset % kHugePage == 0;
  if (isHuge && reinterpret_cast<uintptr_t>(base) % kHugePage != 0)
    return ofFile(fd, offset, size, Access::kReadOnly);
  return mapping;
}

Result<Mapping> Mapping::anonymous(size_t size, size_t ordinary) {
  const size_t page = pageSize();
  if (size > std::numeric_limits<size_t>::max() / 2 - 2 * kHugePage)
    return fail(ErrorCode::kOutOfMemory, "A mapping of {} bytes is too large.", size);
  const size_t body = (size + page - 1) / page * page;
  const size_t slack = size >= kHugePage ? kHugePage : 0;
  const size_t length = body + page + slack;
  void* base = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return std::unexpected(base::errnoError(errno, base::formatText("Reserving {} bytes", length)));
  Mapping mapping;
  mapping.base_ = base;
  mapping.length_ = length;
  auto address = reinterpret_cast<uintptr_t>(base);
  if (slack != 0) {
    address = (address + kHugePage - 1) / kHugePage * kHugePage;
    const size_t first = std::min(ordinary, body);
    // Where the system gives huge pages to all memory, it has to be told.
    if (first != 0) ::madvise(reinterpret_cast<void*>(address), first, MADV_NOHUGEPAGE);
    if (first != body)
      ::madvise(reinterpret_cast<void*>(address + first), body - first, MADV_HUGEPAGE);
  }
  mapping.data_ = reinterpret_cast<uint8_t*>(address);
  mapping.size_ = size;
  return mapping;
}

Result<Mapping> Mapping::reserved(size_t size) {
  Mapping mapping;
  mapping.base_ =
      ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping.base_ == MAP_FAILED) {
    mapping.base_ = nullptr;
    return std::unexpected(
        base::errnoError(errno, base::formatText("Reserving {} addresses", size)));
  }
  mapping.length_ = size;
  mapping.data_ = static_cast<uint8_t*>(mapping.base_);
  mapping.size_ = size;
  return mapping;
}

}  // namespace hearth::memory
