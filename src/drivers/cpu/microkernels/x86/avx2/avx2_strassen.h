// SPDX-License-Identifier: Apache-2.0
// Products on AVX2 of many 8-bit rows that are quantised while a model runs and 8-bit weights, by
// Strassen's way in Winograd's form: rows, inputs and columns are halved, and 7 products of sums of
// the halves take the place of 8. The sums fit in the 16 bits that are multiplied, so the products
// are exact.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cpu/microkernels/x86/avx2/avx2_qd8_panels.h"

namespace hearth::cpu {

// Columns that are multiplied together.
inline constexpr size_t kStrassenColumns = 32;

inline size_t strassenBlocks(const Avx2Qd8Panels& product) {
  return (product.columns + kStrassenColumns - 1) / kStrassenColumns;
}

// Bytes that `rows` prepared rows take, and bytes that a thread needs to multiply them.
size_t strassenRowBytes(const Avx2Qd8Panels& product, size_t rows);
size_t strassenScratch(const Avx2Qd8Panels& product, size_t rows);

// Rows are prepared in so many steps, which may run at the same time.
size_t strassenSteps(const Avx2Qd8Panels& product, size_t rows);
void prepareStrassenRows(const Avx2Qd8Panels& product, const int8_t* numbers, size_t rows,
                         size_t firstStep, size_t lastStep, uint8_t* prepared);

// Multiplies the prepared rows by blocks [firstBlock, lastBlock); `parameters` are those of the
// rows, and `output` is where the first row begins.
void multiplyStrassen(const Avx2Qd8Panels& product, const uint8_t* prepared,
                      const struct xnn_quantization_params* parameters, size_t rows,
                      size_t firstBlock, size_t lastBlock, uint8_t* scratch, float* output);

}  // namespace hearth::cpu
