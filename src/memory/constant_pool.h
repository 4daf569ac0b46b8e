// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/result.h"
#include "memory/pool.h"

namespace hearth::memory {

// Shared memory that `fill` writes and nobody afterwards, not even this process: it is sealed where
// the system can do that, and not writable() then. Where it cannot, it is as Pool::anonymous.
// `fill` gets zeros and may be called a second time. Error: kOutOfMemory, kIo.
Result<PoolRef> constantPool(size_t size, const std::function<void(uint8_t* bytes)>& fill);

}  // namespace hearth::memory
