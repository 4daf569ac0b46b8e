// SPDX-License-Identifier: Apache-2.0
// The product of a single row, as for each token of a language model, and of a few. A single row
// takes as long as reading the weights from memory. XNNPACK's kernel reads one panel after the
// other and leaves fetching to the processor, which on many stops at the end of each page; here
// several panels are read at once, and fetched ahead.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cpu/microkernels/x86/avx2/avx2_qd8_panels.h"

namespace hearth::cpu {

// Numbers of a widened row.
size_t qd8RowNumbers(const Avx2Qd8Panels& product);

// Widens a row to 16 bits; the padding is zero.
void widenQd8Row(const Avx2Qd8Panels& product, const int8_t* row, int16_t* widened);

// Multiplies the widened row by panels [firstPanel, lastPanel); `parameters` are the row's, and
// `output` is where the row begins.
void multiplyQd8Row(const Avx2Qd8Panels& product, const int16_t* widened,
                    const struct xnn_quantization_params& parameters, size_t firstPanel,
                    size_t lastPanel, float* output);

// The same for a few rows, which lie qd8RowNumbers() numbers apart; up to three share each weight
// that is read and widened. Results lie the product's `outputStride` apart.
void multiplyQd8Rows(const Avx2Qd8Panels& product, const int16_t* widened,
                     const struct xnn_quantization_params* parameters, size_t rows,
                     size_t firstPanel, size_t lastPanel, float* output);

}  // namespace hearth::cpu
