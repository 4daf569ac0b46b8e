// SPDX-License-Identifier: Apache-2.0
#include "memory/pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_size_signal.h"
#include "base/format.h"
#include "memory/sigbus_guard.h"

namespace hearth::memory {
namespace {

// Memory that is sealed against shrinking cannot be truncated.
bool isOfFixedSize(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

}  // namespace

Result<PoolRef> Pool::anonymous(size_t size) {
  const int fd = ::memfd_create("hearth-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return std::unexpected(base::errnoError(errno, "Creating shared memory"));
  std::shared_ptr<Pool> pool(new Pool());
  pool->fd_ = base::Descriptor(fd);
  // The limit on file sizes applies to files in memory, too.
  const base::FileSizeSignalOff signalOff;
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0)
    return std::unexpected(
        base::errnoError(errno, base::formatText("Sizing shared memory to {} bytes", size)));
  HEARTH_ASSIGN(pool->mapping_, Mapping::ofFile(fd, 0, size, Mapping::Access::kReadWrite));
  pool->kind_ = PoolKind::kAshmem;
  pool->data_ = pool->mapping_.data();
  pool->size_ = size;
  pool->writable_ = true;
  return pool;
}

Result<PoolRef> Pool::ofFile(int fd, uint64_t offset, size_t size, Mapping::Access access) {
  // Somebody may truncate the file.
  const auto watched = std::make_shared<WatchedPages>();
  const std::shared_ptr<Pool> pool(new Pool(), [watched](const Pool* gone) {
    // Ends before anything else can get the same addresses.
    *watched = WatchedPages();
    delete gone;
  });
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return std::unexpected(base::errnoError(errno, "Duplicating a memory descriptor"));
  pool->fd_ = base::Descriptor(copy);
  HEARTH_ASSIGN(pool->mapping_, Mapping::ofFile(copy, offset, size, access));
  pool->kind_ = PoolKind::kMmapFd;
  pool->offset_ = offset;
  pool->data_ = pool->mapping_.data();
  pool->size_ = size;
  pool->writable_ = access == Mapping::Access::kReadWrite;
  if (!isOfFixedSize(copy)) *watched = WatchedPages(pool->data_, size);
  return pool;
}

Result<PoolRef> Pool::openFile(const std::string& path) {
  HEARTH_ASSIGN(base::Descriptor file, base::Descriptor::open(path, O_RDONLY | O_NONBLOCK));
  HEARTH_ASSIGN(const uint64_t size, file.size());
  if (size == 0) return fail(ErrorCode::kBadData, "The file {} is empty.", path);
  return ofFile(file.get(), 0, size, Mapping::Access::kReadOnly);
}

PoolRef Pool::borrowed(const void* data, size_t size) {
  std::shared_ptr<Pool> pool(new Pool());
  pool->data_ = static_cast<uint8_t*>(const_cast<void*>(data));
  pool->size_ = size;
  return pool;
}

}  // namespace hearth::memory
