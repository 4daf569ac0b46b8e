// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/cpu/kernels/kernel.h"

namespace hearth::cpu {

// Copies `rows` pieces of `bytes` bytes each from one value to another. Offsets and strides are in
// bytes.
struct BlockCopy {
  ValueId source = 0, destination = 0;
  uint64_t sourceOffset = 0, destinationOffset = 0;
  uint64_t sourceStride = 0, destinationStride = 0;
  uint64_t rows = 1, bytes = 0;
};

// Makes a kernel that runs all copies. Destinations must not overlap sources, or be the same bytes.
Result<std::unique_ptr<Kernel>> makeCopyKernel(std::vector<BlockCopy> copies);

}  // namespace hearth::cpu
