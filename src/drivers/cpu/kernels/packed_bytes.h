// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace hearth::cpu {

// The start of a layer's packed weights. Error: kUnsupported when they are fewer than the `needed`
// bytes that its kernel reads.
inline Result<const uint8_t*> packedBytes(std::span<const uint8_t> packed, size_t needed) {
  if (packed.size() < needed)
    return fail(ErrorCode::kUnsupported, "A layer of {} bytes is packed to {}.", needed,
                packed.size());
  return packed.data();
}

}  // namespace hearth::cpu
