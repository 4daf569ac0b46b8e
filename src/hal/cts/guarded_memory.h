// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hearth::hal::cts {

// Memory with an inaccessible page on each side: an access outside ends the process. Move-only.
class GuardedMemory {
 public:
  // kAtEnd: the last byte lies just before the guard page, so an odd size gives an odd address.
  // kAtBegin: the first byte lies just after a guard page.
  enum class Place { kAtBegin, kAtEnd };

  GuardedMemory(size_t size, Place place);
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory& operator=(GuardedMemory&&) = delete;
  ~GuardedMemory();

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // Makes the bytes read-only from now on.
  void makeReadOnly();

 private:
  uint8_t* base_ = nullptr;
  size_t length_ = 0;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hearth::hal::cts
