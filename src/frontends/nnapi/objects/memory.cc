// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace hearth::nnapi {
namespace {

Status checkRange(const MemoryRange& range, uint64_t size) {
  if (range.offset == 0 && range.length == 0)
    return fail(ErrorCode::kBadData, "Offset and length are both 0; the memory has {} bytes.",
                size);
  if (range.offset > size || range.length > size - range.offset)
    return fail(ErrorCode::kBadData, "The range {}+{} is outside the memory of {} bytes.",
                range.offset, range.length, size);
  return {};
}

hal::Argument poolArgument(memory::PoolRef pool, const graph::Dimensions& dimensions,
                           const MemoryRange& range) {
  hal::Argument argument;
  argument.kind = hal::Argument::Kind::kPool;
  argument.pool = std::move(pool);
  argument.offset = range.offset;
  argument.length = range.length;
  argument.dimensions = dimensions;
  return argument;
}

class FileMemory final : public SizedMemory {
 public:
  FileMemory(uint64_t size, int protect, base::Descriptor file, uint64_t offset)
      : SizedMemory(size), protect_(protect), file_(std::move(file)), offset_(offset) {}

 protected:
  Result<memory::PoolRef> map() override {
    auto pool =
        memory::Pool::ofFile(file_.get(), offset_, size(),
                             (protect_ & PROT_WRITE) != 0 ? memory::Mapping::Access::kReadWrite
                                                          : memory::Mapping::Access::kReadOnly);
    if (pool) return *pool;
    return fail(ErrorCode::kUnmappable, "The memory of {} bytes cannot be mapped. {}", size(),
                pool.error().toString());
  }

  Status checkStillThere() override {
    struct stat status;
    if (::fstat(file_.get(), &status) != 0)
      return std::unexpected(base::errnoError(errno, "Reading the size of a memory's file"));
    if (!S_ISREG(status.st_mode)) return {};
    const auto fileSize = static_cast<uint64_t>(status.st_size);
    if (offset_ > fileSize || size() > fileSize - offset_)
      return fail(ErrorCode::kOpFailed,
                  "The memory is {} bytes at offset {} of a file that has {} bytes by now.", size(),
                  offset_, fileSize);
    return {};
  }

 private:
  const int protect_;
  const base::Descriptor file_;
  const uint64_t offset_;
};

class PoolMemory final : public SizedMemory {
 public:
  explicit PoolMemory(memory::PoolRef pool) : SizedMemory(pool->size()), given_(std::move(pool)) {}

 protected:
  Result<memory::PoolRef> map() override { return given_; }

 private:
  const memory::PoolRef given_;
};

class ImageMemory final : public Memory {
 public:
  explicit ImageMemory(memory::PoolRef pool) : pool_(std::move(pool)) {}

  bool isWhole() const override { return true; }
  Result<memory::PoolRef> constantPool(const MemoryRange& /*range*/) override {
    return fail(ErrorCode::kBadData, "A hardware buffer that is no BLOB holds no constants.");
  }
  Result<graph::Dimensions> checkArgument(const ArgumentRole& /*role*/,
                                          const graph::Dimensions& dimensions,
                                          const MemoryRange& range) override {
    if (range.offset == 0 && range.length == 0) return dimensions;
    return fail(ErrorCode::kBadData,
                "A hardware buffer that is no BLOB is used as a whole; the range is {}+{}.",
                range.offset, range.length);
  }
  Result<hal::Argument> argument(bool /*isInput*/, const graph::Dimensions& dimensions,
                                 const MemoryRange& /*range*/) override {
    return poolArgument(pool_, dimensions, {0, pool_->size()});
  }
  Result<MemoryContents> contents() override { return noCopies(); }
  Status setContents(const MemoryContents& /*contents*/) override { return noCopies(); }

 private:
  static std::unexpected<Error> noCopies() {
    return fail(ErrorCode::kUnmappable,
                "A hardware buffer that is no BLOB cannot be copied from or to.");
  }

  const memory::PoolRef pool_;
};

}  // namespace

Result<memory::PoolRef> SizedMemory::pool() {
  const std::lock_guard lock(mutex_);
  if (pool_ == nullptr) {
    HEARTH_ASSIGN(pool_, map());
  }
  HEARTH_TRY(checkStillThere());
  return pool_;
}

Result<memory::PoolRef> SizedMemory::constantPool(const MemoryRange& range) {
  HEARTH_TRY(checkRange(range, size_));
  return pool();
}

Result<graph::Dimensions> SizedMemory::checkArgument(const ArgumentRole& /*role*/,
                                                     const graph::Dimensions& dimensions,
                                                     const MemoryRange& range) {
  HEARTH_TRY(checkRange(range, size_));
  return dimensions;
}

Result<hal::Argument> SizedMemory::argument(bool isInput, const graph::Dimensions& dimensions,
                                            const MemoryRange& range) {
  auto mapped = pool();
  // NNAPI's executions never fail with UNMAPPABLE.
  if (!mapped)
    return fail(ErrorCode::kOpFailed, "An argument's memory cannot be used. {}",
                mapped.error().toString());
  if (!isInput && !(*mapped)->writable())
    return fail(ErrorCode::kOpFailed, "The memory of an output is read-only.");
  return poolArgument(std::move(*mapped), dimensions, range);
}

Result<MemoryContents> SizedMemory::contents() {
  HEARTH_ASSIGN(memory::PoolRef mapped, pool());
  return MemoryContents{std::move(mapped), size_, std::nullopt};
}

Status SizedMemory::setContents(const MemoryContents& contents) {
  if (contents.length != size_)
    return fail(ErrorCode::kBadData, "The source has {} bytes, the memory {}.", contents.length,
                size_);
  HEARTH_ASSIGN(const memory::PoolRef mapped, pool());
  if (!mapped->writable())
    return fail(ErrorCode::kUnmappable, "The memory that is copied to is read-only.");
  // memmove, because two memories may overlap in one file.
  std::memmove(mapped->mutableData(), contents.pool->data(), contents.length);
  return {};
}

Status copyMemory(Memory& source, Memory& destination) {
  if (&source == &destination) return {};
  auto contents = source.contents();
  if (!contents) {
    destination.loseContents();
    return std::unexpected(std::move(contents.error()));
  }
  return destination.setContents(*contents);
}

Result<std::shared_ptr<Memory>> memoryOfFile(uint64_t size, int protect, int fd, uint64_t offset) {
  if (size == 0) return fail(ErrorCode::kBadData, "The size of the memory is 0.");
  if (fd < 0) return fail(ErrorCode::kBadData, "The descriptor is {}.", fd);
  if ((protect & ~(PROT_READ | PROT_WRITE)) != 0)
    return fail(ErrorCode::kBadData, "The protection {:#x} is not of PROT_READ and PROT_WRITE.",
                protect);
  constexpr auto kMaxFileSize = static_cast<uint64_t>(INT64_MAX);
  if (offset > kMaxFileSize || size > kMaxFileSize - offset)
    return fail(ErrorCode::kBadData, "The range {}+{} is outside every file.", offset, size);
  base::Descriptor file(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!file.valid()) {
    const int error = errno;
    if (error == EBADF) return fail(ErrorCode::kBadData, "The descriptor {} is not open.", fd);
    return std::unexpected(base::errnoError(error, "Duplicating a descriptor"));
  }
  return std::make_shared<FileMemory>(size, protect, std::move(file), offset);
}

std::shared_ptr<Memory> memoryOfPool(memory::PoolRef pool) {
  return std::make_shared<PoolMemory>(std::move(pool));
}

std::shared_ptr<Memory> memoryOfImage(memory::PoolRef pool) {
  return std::make_shared<ImageMemory>(std::move(pool));
}

}  // namespace hearth::nnapi
