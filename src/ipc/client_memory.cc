// SPDX-License-Identifier: Apache-2.0
#include "ipc/client_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <utility>

#include "ipc/decoding.h"
#include "memory/mapping.h"
#include "memory/sigbus_guard.h"

namespace hearth::ipc {
namespace {

// The guard knows 8192 ranges of a process; some are left to drivers.
constexpr size_t kMostGuarded = 6000;
constinit std::atomic<size_t> guardedCount = 0;

// Reads of a file system in user space wait for a program of the client's.
constexpr auto kFuse = 0x65735546;

bool isSealed(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

Status checkKind(int fd) {
  struct stat status;
  if (::fstat(fd, &status) != 0)
    return std::unexpected(base::errnoError(errno, "Looking at a client's memory"));
  if (!S_ISREG(status.st_mode) && !memory::isDmaBuf(fd))
    return fail(ErrorCode::kBadData, "A client's memory is neither a file nor a dma-buf.");
  struct statfs system;
  if (::fstatfs(fd, &system) != 0)
    return std::unexpected(base::errnoError(errno, "Looking at a client's memory"));
  if (system.f_type == kFuse)
    return fail(ErrorCode::kBadData, "A client's memory is a file of a program (FUSE).");
  return {};
}

}  // namespace

struct ClientMemories::Use {
  Use(size_t mostMemories, uint64_t mostBytes) : mostCount(mostMemories), most(mostBytes) {}

  const size_t mostCount;
  const uint64_t most;
  std::atomic<size_t> memories = 0;
  std::atomic<uint64_t> bytes = 0;

  Status take(uint64_t more) {
    if (more > most || bytes.fetch_add(more) > most - more) {
      if (more <= most) bytes -= more;
      return fail(ErrorCode::kResourceExhaustedTransient,
                  "A client wants {} bytes more; {} at a time are the limit.", more, most);
    }
    return {};
  }
  Status takePlaces(size_t more) {
    if (more > mostCount || memories.fetch_add(more) > mostCount - more) {
      if (more <= mostCount) memories -= more;
      return fail(ErrorCode::kResourceExhaustedTransient,
                  "A client wants more memories; {} at a time are the limit.", mostCount);
    }
    return {};
  }
};

ClientMemories::ClientMemories(size_t mostMemories, uint64_t mostBytes)
    : use_(std::make_shared<Use>(mostMemories, mostBytes)) {}

Result<memory::PoolRef> ClientMemories::map(schema::Memory::Reader memory,
                                            const std::vector<base::Descriptor>& descriptors) {
  const uint64_t size = memory.getSize();
  // As the pool of a client that has no bytes.
  if (size == 0) return memory::Pool::borrowed(this, 0);
  HEARTH_ASSIGN(const int fd, findDescriptor(memory.getDescriptor(), descriptors));
  HEARTH_TRY(checkKind(fd));
  HEARTH_TRY(use_->takePlaces(1));
  // Gives back what was taken, when the pool goes or cannot be made.
  struct Held {
    std::shared_ptr<Use> use;
    bool isGuarded = false;
    memory::PoolRef pool;
    ~Held() {
      pool.reset();
      if (isGuarded) --guardedCount;
      --use->memories;
    }
  };
  const auto held = std::make_shared<Held>();
  held->use = use_;
  const auto access = memory.getIsWritable() ? memory::Mapping::Access::kReadWrite
                                             : memory::Mapping::Access::kReadOnly;
  if (!isSealed(fd) && !memory::isDmaBuf(fd)) {
    held->isGuarded = guardedCount.fetch_add(1) < kMostGuarded;
    if (!held->isGuarded) {
      --guardedCount;
      return fail(ErrorCode::kResourceExhaustedTransient,
                  "The clients of a host have more than {} memories that are not sealed.",
                  kMostGuarded);
    }
  }
  HEARTH_ASSIGN(held->pool,
                memory::Pool::ofFile(fd, memory.getOffset(), static_cast<size_t>(size), access));
  return memory::PoolRef(held, held->pool.get());
}

Result<std::shared_ptr<void>> ClientMemories::reserve(uint64_t bytes) {
  HEARTH_TRY(use_->take(bytes));
  return std::shared_ptr<void>(nullptr, [use = use_, bytes](void*) { use->bytes -= bytes; });
}

Result<std::shared_ptr<void>> ClientMemories::hold(size_t memories) {
  HEARTH_TRY(use_->takePlaces(memories));
  return std::shared_ptr<void>(nullptr,
                               [use = use_, memories](void*) { use->memories -= memories; });
}

size_t ClientMemories::count() const {
  return use_->memories.load();
}

}  // namespace hearth::ipc
