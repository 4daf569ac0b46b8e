// SPDX-License-Identifier: Apache-2.0
#include "threads/core_kinds.h"

// Of libcpuinfo, which XNNPACK loads; Debian has no header of it. Weak, so that this library works
// without, and of the same version as XNNPACK's, so that both mean the same by a number.
extern "C" __attribute__((weak)) uint32_t
cpuinfo_get_current_uarch_index_with_default(uint32_t fallback);

namespace hearth::threads {

uint32_t CoreKinds::current() const {
  if (cpuinfo_get_current_uarch_index_with_default == nullptr) return fallback;
  const uint32_t kind = cpuinfo_get_current_uarch_index_with_default(fallback);
  return kind > greatest ? fallback : kind;
}

}  // namespace hearth::threads
