// SPDX-License-Identifier: Apache-2.0
// Memory pools: shared memory that models, requests and drivers refer to by handle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "memory/mapping.h"

namespace hearth::memory {

// NNAPI's kinds of driver-visible memory, plus bytes that a client lent us in this process.
enum class PoolKind { kAshmem, kMmapFd, kHardwareBufferBlob, kHardwareBuffer, kBorrowed };

class Pool;
using PoolRef = std::shared_ptr<const Pool>;

// A sized piece of memory. Immutable handle shared by reference count; the bytes may be written by
// whoever holds it, callers order their accesses. Mapped for its whole life, a readable page behind
// (except kBorrowed).
class Pool {
 public:
  // Anonymous shared memory (memfd), zeroed, readable and writable.
  static Result<PoolRef> anonymous(size_t size);

  // A range of a file; the descriptor is duplicated, the caller may close its own.
  static Result<PoolRef> ofFile(int fd, uint64_t offset, size_t size, Mapping::Access access);

  // A whole file by path, read-only: how model files come in. An empty file is kBadData.
  static Result<PoolRef> openFile(const std::string& path);

  // Bytes of the caller, not copied: they must outlive every user of the pool.
  static PoolRef borrowed(const void* data, size_t size);

  PoolKind kind() const { return kind_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool writable() const { return writable_; }
  // Only when writable().
  uint8_t* mutableData() const { return data_; }
  // Descriptor and offset behind the pool, -1 for kBorrowed.
  int fd() const { return fd_.get(); }
  uint64_t offset() const { return offset_; }

  // Whether [offset, offset + length) lies inside; never wraps.
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
