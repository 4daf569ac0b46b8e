// SPDX-License-Identifier: Apache-2.0
// Memory pools: shared memory that models, requests and drivers refer to by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "memory/mapping.h"

namespace hearth::memory {

// NNAPI's kinds of driver-visible memory, and bytes that a client of this process has lent.
enum class PoolKind { kAshmem, kMmapFd, kHardwareBufferBlob, kHardwareBuffer, kBorrowed };

class Pool;
using PoolRef = std::shared_ptr<const Pool>;

// A piece of memory of fixed size. An immutable handle, shared by reference count. Any holder may
// write the bytes; callers order their accesses. Mapped for its whole life, with a readable page
// behind it (except kBorrowed).
class Pool {
 public:
  // Anonymous shared memory (memfd); zeroed, readable and writable.
  static Result<PoolRef> anonymous(size_t size);

  // A range of a file. The descriptor is duplicated, so the caller may close its own.
  static Result<PoolRef> ofFile(int fd, uint64_t offset, size_t size, Mapping::Access access);

  // A whole file by path, read-only; used for model files. An empty file is kBadData.
  static Result<PoolRef> openFile(const std::string& path);

  // Bytes of the caller. They are not copied and must outlive every user of the pool.
  static PoolRef borrowed(const void* data, size_t size);

  PoolKind kind() const { return kind_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool writable() const { return writable_; }
  // Only when writable().
  uint8_t* mutableData() const { return data_; }
  // The descriptor behind the pool, which keeps it (-1 for kBorrowed), and the offset in it.
  int fd() const { return fd_.get(); }
  uint64_t offset() const { return offset_; }

  // Whether [offset, offset + length) lies inside; the sum cannot wrap.
  bool contains(uint64_t offset, uint64_t length) const {
    return offset <= size_ && length <= size_ - offset;
  }

 private:
  Pool() = default;

  PoolKind kind_ = PoolKind::kBorrowed;
  base::Descriptor fd_;
  uint64_t offset_ = 0;
  Mapping mapping_;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool writable_ = false;
};

}  // namespace hearth::memory
