// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/scattered_reads.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace hearth::tflite {
namespace {

uintptr_t pageSize() {
  static const auto size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

void* pageOf(const void* byte) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(byte) / pageSize() * pageSize());
}

}  // namespace

ScatteredReads::ScatteredReads(const memory::Pool& pool) {
  if (pool.kind() != memory::PoolKind::kMmapFd || pool.writable()) return;
  // Reading a small file as a whole takes less time than reading many of its pages one by one.
  constexpr size_t kWorthIt = size_t{8} << 20;
  if (pool.size() < kWorthIt) return;
  begin_ = pageOf(pool.data());
  size_ = pool.size() + reinterpret_cast<uintptr_t>(pool.data()) % pageSize();
  advise(MADV_RANDOM);
}

ScatteredReads::~ScatteredReads() {
  advise(MADV_NORMAL);
}

bool ScatteredReads::isResident(const void* byte) const {
  unsigned char page = 0;
  return size_ == 0 || ::mincore(pageOf(byte), 1, &page) != 0 || (page & 1) != 0;
}

void ScatteredReads::begin(const void* data, size_t size) const {
  if (size_ == 0 || size == 0) return;
  void* const first = pageOf(data);
  const auto* const end = static_cast<const uint8_t*>(data) + size;
  ::madvise(first, static_cast<size_t>(end - static_cast<const uint8_t*>(first)), MADV_WILLNEED);
}

void ScatteredReads::advise(int advice) const {
  if (size_ != 0) ::madvise(begin_, size_, advice);
}

}  // namespace hearth::tflite
