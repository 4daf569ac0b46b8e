// SPDX-License-Identifier: Apache-2.0
#include "hal/cts/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace hearth::hal::cts {

GuardedMemory::GuardedMemory(size_t size, Place place) : size_(size) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t body = (size + page - 1) / page * page;
  length_ = body + 2 * page;
  void* base = ::mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) std::abort();
  base_ = static_cast<uint8_t*>(base);
  if (body != 0 && ::mprotect(base_ + page, body, PROT_READ | PROT_WRITE) != 0) std::abort();
  data_ = place == Place::kAtBegin ? base_ + page : base_ + page + body - size;
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      length_(other.length_),
      data_(other.data_),
      size_(other.size_) {}

GuardedMemory::~GuardedMemory() {
  if (base_ != nullptr) ::munmap(base_, length_);
}

void GuardedMemory::makeReadOnly() {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (length_ > 2 * page && ::mprotect(base_ + page, length_ - 2 * page, PROT_READ) != 0)
    std::abort();
}

}  // namespace hearth::hal::cts
