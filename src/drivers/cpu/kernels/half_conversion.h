// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "drivers/cpu/kernels/kernel.h"

namespace hearth::cpu {

// Converts `count` elements of one value into another.
struct HalfConversion {
  enum class Kind : uint8_t {
    kWiden,   // float16 to float32
    kNarrow,  // float32 to float16
    kRound,   // float32 to the nearest float16 numbers, as float32; in place
  };
  Kind kind = Kind::kWiden;
  ValueId source = 0, destination = 0;  // kRound: the same one
  uint64_t count = 0;
};

Result<std::unique_ptr<Kernel>> makeHalfConversion(const HalfConversion& conversion);

}  // namespace hearth::cpu
