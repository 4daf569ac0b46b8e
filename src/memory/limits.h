// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hearth::memory {

// How many more bytes the process may map under its limits (RLIMIT_AS, RLIMIT_DATA); UINT64_MAX
// without a limit. A single mapping may get less, since free addresses are not contiguous.
// Thread-safe.
uint64_t addressesLeft();

// The machine's memory in bytes; 4 GiB when the system does not tell. Thread-safe.
uint64_t machineMemory();

}  // namespace hearth::memory
