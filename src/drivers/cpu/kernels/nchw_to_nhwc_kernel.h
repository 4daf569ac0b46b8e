// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "drivers/cpu/kernels/kernel.h"

namespace hearth::cpu {

// Transposes bytes from [batch, 3, pixels] to [batch, pixels, 3]: three planes become one image.
// Image networks that were exported with planes begin with this transposition.
struct NchwToNhwc {
  ValueId source = 0, destination = 0;
  uint64_t batch = 1, pixels = 0;
};

Result<std::unique_ptr<Kernel>> makeNchwToNhwcKernel(NchwToNhwc transposition);

}  // namespace hearth::cpu
