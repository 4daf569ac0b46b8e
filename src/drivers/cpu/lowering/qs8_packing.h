// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "drivers/cpu/microkernels/x86/avx512/qs8_gemm.h"

namespace hearth::cpu {

// Packs panels for Qs8Gemm. weightAt(column, input) is a weight, of `inputs` for each column; a
// bias for each column may be missing (null), a factor may not. `packed` has panels() *
// panelBytes() bytes.
template <typename WeightAt>
void packQs8(const Qs8Gemm& product, size_t inputs, const WeightAt& weightAt, const int32_t* bias,
             const float* factors, int32_t inputZero, uint8_t* packed) {
  std::memset(packed, 0, product.panels() * product.panelBytes());
  for (size_t column = 0; column < product.columns; ++column) {
    uint8_t* const panel = packed + column / kQs8Columns * product.panelBytes();
    const size_t lane = column % kQs8Columns;
    uint8_t* const groups = panel + kQs8Columns * sizeof(int32_t);
    uint32_t sum = 0;
    for (size_t k = 0; k < inputs; ++k) {
      const int8_t weight = weightAt(column, k);
      groups[(k / kQs8Group * kQs8Columns + lane) * kQs8Group + k % kQs8Group] =
          static_cast<uint8_t>(weight);
      sum += static_cast<uint32_t>(int32_t{weight});
    }
    // The product reads inputs plus 128. The arithmetic is unsigned, because a hostile bias may
    // make it wrap, as it does in the kernels.
    const uint32_t constant = static_cast<uint32_t>(bias != nullptr ? bias[column] : 0) -
                              sum * static_cast<uint32_t>(inputZero + 128);
    uint8_t* const last = groups + kQs8Columns * product.inputs;
    std::memcpy(panel + lane * sizeof constant, &constant, sizeof constant);
    std::memcpy(last + lane * sizeof(float), factors + column, sizeof(float));
  }
}

}  // namespace hearth::cpu
