// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"

namespace hearth::memory {

// Whether the descriptor is a dma-buf: memory that devices share, whose size never changes.
bool isDmaBuf(int fd);

// How many bytes of it can be mapped; nothing when the descriptor does not tell (character
// devices).
std::optional<uint64_t> mappableSize(int fd);

// One mapped range with readable memory behind it, since XNNPACK reads up to 16 bytes past its
// inputs: at least a page unless stated otherwise. Move-only; the range lives as long as the
// object. A move is not thread-safe.
class Mapping {
 public:
  enum class Access { kReadOnly, kReadWrite };

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  // Maps [offset, offset + size) of the file, shared; `offset` need not be page-aligned. Aligned to
  // 2 MiB in memory where size and offset allow huge pages. Errors: kBadData when the file is
  // shorter, so that no later read faults on a hole at its end; kOutOfMemory, kIo.
  static Result<Mapping> ofFile(int fd, uint64_t offset, size_t size, Access access);

  // The same, read-only and in one system call, for a range behind which the file has at least
  // kReadableBehind more bytes, as the caller knows. These bytes, instead of a page, can be read
  // behind it.
  static constexpr size_t kReadableBehind = 64;
  static Result<Mapping> insideFile(int fd, uint64_t offset, size_t size);

  // Zeroed private memory, 64-byte aligned and page granular; asks for huge pages from 2 MiB on.
  // Not for the first `ordinary` bytes, a multiple of 2 MiB: the first byte that is written to a
  // huge page takes all of its memory.
  static Result<Mapping> anonymous(size_t size, size_t ordinary = 0);

  // Addresses for `size` bytes that can be neither read nor written, for data that must not be
  // touched. Takes no memory.
  static Result<Mapping> reserved(size_t size);

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* base_ = nullptr;  // for munmap: page-aligned, with the page behind
  size_t length_ = 0;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hearth::memory
