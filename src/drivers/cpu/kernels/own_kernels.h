// SPDX-License-Identifier: Apache-2.0
// Kernels for steps that XNNPACK lacks or runs no faster: moving memory, adding floats.
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

// Runs all copies. Destinations must not overlap sources.
Result<std::unique_ptr<Kernel>> makeCopyKernel(std::vector<BlockCopy> copies);

// Pads a [batch, height, width, channels] tensor spatially with one byte pattern per element.
struct SpatialPad {
  ValueId source = 0, destination = 0;
  uint64_t batch = 1, height = 1, width = 1;
  uint64_t pixelBytes = 0;  // channels * element size
  uint64_t top = 0, bottom = 0, left = 0, right = 0;
  uint8_t fillByte = 0;  // every byte of the padding
};
Result<std::unique_ptr<Kernel>> makeSpatialPadKernel(SpatialPad pad);

// Interleaves three planes of bytes into pixels: [batch, 3, pixels] to [batch, pixels, 3]. Image
// networks that were exported with planes begin with this transposition.
struct PlaneInterleave {
  ValueId source = 0, destination = 0;
  uint64_t batch = 1, pixels = 0;
};
Result<std::unique_ptr<Kernel>> makePlaneInterleaveKernel(PlaneInterleave interleave);

// Computes a + b, clamped, in one pass over float32 tensors; b is added to each row of a. The sum
// may have the memory of a, and with one row that of b.
struct FloatAdd {
  ValueId a = 0, b = 0, sum = 0;
  uint64_t rows = 1, columns = 0;
  float lowest = 0, highest = 0;
};
Result<std::unique_ptr<Kernel>> makeFloatAddKernel(FloatAdd add);

}  // namespace hearth::cpu
