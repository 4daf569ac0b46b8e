// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "drivers/cpu/kernels/kernel.h"

namespace hearth::cpu {

// Computes a + b, clamped, in one pass over float32 tensors; b is added to each row of a. The sum
// may have the memory of a, and with one row that of b.
struct F32Add {
  ValueId a = 0, b = 0, sum = 0;
  uint64_t rows = 1, columns = 0;
  float lowest = 0, highest = 0;
};

Result<std::unique_ptr<Kernel>> makeF32AddKernel(F32Add add);

}  // namespace hearth::cpu
