// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "android/hardware_buffer.h"
#include "memory/pool.h"

// Sealed shared memory with a description; freed with its last reference.
struct AHardwareBuffer {
  AHardwareBuffer_Desc description;
  hearth::memory::PoolRef pool;
  std::atomic<uint32_t> references = 1;
};

namespace hearth::nnapi {

// Bytes of a buffer of this description, or 0 if no such buffer is possible: an unknown format, a
// dimension of 0, a BLOB of more than one row or layer, reserved fields in use, more than 2^47
// bytes.
uint64_t hardwareBufferSize(const AHardwareBuffer_Desc& description);

}  // namespace hearth::nnapi
