// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hearth::base {

// Memory of this process in KiB, as the kernel counts it; 0 if the kernel does not tell.
struct ProcessMemory {
  uint64_t peakRssKib = 0;       // VmHWM
  uint64_t anonymousRssKib = 0;  // RssAnon: private memory without a file
  uint64_t pssKib = 0;           // resident, shared pages divided among their users
};

ProcessMemory readProcessMemory();

// VmHWM and RssAnon alone, which are cheap to read.
uint64_t readPeakRssKib();
uint64_t readAnonymousRssKib();

}  // namespace hearth::base
