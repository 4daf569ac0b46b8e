// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hearth::base {

// Counts the writes to files of this process that others wait for, so that who waits tells a slow
// disk from a dead one. Thread-safe.
void noteWrite();

// Changes as long as threads of this process write.
uint64_t writeProgress();

}  // namespace hearth::base
