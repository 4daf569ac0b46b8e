// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace hearth::memory {

// The bytes of a page of this machine: 4 KiB on x86-64; 4, 16 or 64 KiB on ARM64, as its kernel was
// built. Thread-safe.
inline size_t pageSize() {
  static const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

// The begin of the page that holds the byte, and the pages of a range from there to its end, whole
// ones, in bytes. For system calls, which take nothing else.
inline uint8_t* pageOf(const void* byte) {
  const auto address = reinterpret_cast<uintptr_t>(byte);
  return reinterpret_cast<uint8_t*>(address / pageSize() * pageSize());
}
inline size_t pagesOf(const void* begin, size_t size) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  return (address % pageSize() + size + pageSize() - 1) / pageSize() * pageSize();
}

}  // namespace hearth::memory
