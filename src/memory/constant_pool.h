// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/result.h"
#include "memory/pool.h"

namespace hearth::memory {

// Shared memory that `fill` writes and nothing changes afterwards, not even this process: it is
// sealed where the system can do that, and then not writable(). Elsewhere it is like
// Pool::anonymous. `fill` gets zeroed memory and may be called a second time. Errors: kOutOfMemory,
// kIo.
Result<PoolRef> constantPool(size_t size, const std::function<void(uint8_t* bytes)>& fill);

}  // namespace hearth::memory
