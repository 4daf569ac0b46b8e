// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hearth::hal::cts {

// Memory with a page on each side that cannot be touched: a byte read or written outside ends the
// process. Move-only.
class GuardedMemory {
 public:
  // kAtEnd: the last byte lies before the guard page (the address is as odd as the size makes it).
  // kAtBegin: the first byte lies after one.
  enum class Place { kAtBegin, kAtEnd };

  GuardedMemory(size_t size, Place place);
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&&) = delete;
  ~GuardedMemory();

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // From now on the bytes cannot be written.
  void makeReadOnly();

 private:
  uint8_t* base_ = nullptr;
  size_t length_ = 0;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hearth::hal::cts
