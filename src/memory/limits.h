// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hearth::memory {

// How many more bytes the process may map by its limits (RLIMIT_AS, RLIMIT_DATA); UINT64_MAX where
// it has none. What it may map at once can be less, since addresses are not in one piece.
uint64_t addressesLeft();

// The machine's memory in bytes; 4 GiB where nobody says how much that is.
uint64_t machineMemory();

}  // namespace hearth::memory
