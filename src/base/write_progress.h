// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hearth::base {

// Counts the process's writes to files that other threads wait for, so that these can tell a slow
// disk from a dead one. Thread-safe.
void noteWrite();

// Changes while threads of this process write.
uint64_t writeProgress();

}  // namespace hearth::base
