// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/released_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace hearth::cpu {

void releasePages(std::span<const uint8_t> bytes) {
  static const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  constexpr size_t kWorthACall = size_t{64} << 10;
  if (bytes.size() < kWorthACall) return;
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + bytes.size()) / page * page;
  if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace hearth::cpu
