// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hearth::tools {

// This process, as the kernel counts it; 0 where it does not say.
struct ProcessMemory {
  uint64_t peakRssKib = 0;       // VmHWM
  uint64_t anonymousRssKib = 0;  // RssAnon: private memory that no file is behind
  uint64_t pssKib = 0;           // resident, shared pages divided among their users
};

ProcessMemory readProcessMemory();

// VmHWM alone, which costs nothing to read.
uint64_t readPeakRssKib();

}  // namespace hearth::tools
