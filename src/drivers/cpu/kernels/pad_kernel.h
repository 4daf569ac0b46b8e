// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "drivers/cpu/kernels/kernel.h"

namespace hearth::cpu {

// Pads a [batch, height, width, channels] tensor spatially with one byte pattern per element.
struct SpatialPad {
  ValueId source = 0, destination = 0;
  uint64_t batch = 1, height = 1, width = 1;
  uint64_t pixelBytes = 0;  // channels * element size
  uint64_t top = 0, bottom = 0, left = 0, right = 0;
  uint8_t fillByte = 0;  // every byte of the padding
};

Result<std::unique_ptr<Kernel>> makePadKernel(SpatialPad pad);

}  // namespace hearth::cpu
