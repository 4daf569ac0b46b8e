// SPDX-License-Identifier: Apache-2.0
// TENSOR_INT4: two elements in a byte, the first in its low half; rows follow one another without
// padding.
#pragma once

#include <cstdint>

namespace hearth::ops {

// -8 to 7.
inline int8_t int4At(const uint8_t* bytes, uint64_t index) {
  const uint8_t pair = bytes[index / 2];
  const int half = index % 2 == 0 ? pair & 15 : pair >> 4;
  return static_cast<int8_t>(half < 8 ? half : half - 16);
}

}  // namespace hearth::ops
