// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/scattered_reads.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace hearth::tflite {

ScatteredReads::ScatteredReads(const memory::Pool& pool) {
  if (pool.kind() != memory::PoolKind::kMmapFd || pool.writable()) return;
  // All of a small file comes sooner than many of its pages one by one.
  constexpr size_t kWorthIt = size_t{8} << 20;
  if (pool.size() < kWorthIt) return;
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(pool.data());
  begin_ = reinterpret_cast<void*>(begin / page * page);
  size_ = pool.size() + begin % page;
  advise(MADV_RANDOM);
}

ScatteredReads::~ScatteredReads() {
  advise(MADV_NORMAL);
}

// Best effort.
void ScatteredReads::advise(int advice) const {
  if (size_ != 0) ::madvise(begin_, size_, advice);
}

}  // namespace hearth::tflite
