// SPDX-License-Identifier: Apache-2.0
// Matrix products of 8-bit inputs and weights on AVX2 and AVX-VNNI, with exact sums. XNNPACK's
// kernels for AVX2 widen both to 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cpu/microkernels/x86/avx2/avx2_packing.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"

struct xnn_quantization_params;

namespace hearth::cpu {

// Bytes behind the last prepared row that the product may read.
inline constexpr size_t kAvx2ReadSlack = kAvx2Window;

// How a sum becomes a result.
enum class Avx2Output {
  kInt8,   // clamp(zero point + factor * (constant + sum)), rounded to nearest even
  kUint8,  // the same
};

struct Avx2Gemm {
  Avx2Panels weights;
  Avx2Output output = Avx2Output::kInt8;
  int32_t outputZero = 0;
  int32_t lowest = 0, highest = 0;  // of the output, in steps
  size_t outputStride = 0;          // bytes from one row to the next
  // Whether kDots uses the instruction. Without it, it is computed from others.
  bool hasDotInstruction = hasAvxVnni();

  size_t panels() const { return weights.count(); }
};

// A product of rows that are quantised while the model runs:
// output[row][column] = clamp(bias[column] + factor[column] * rowScale[row] * sum over inputs).
// The constants of its weights are the negative sums of the columns' weights.
struct Avx2HybridGemm {
  Avx2Panels weights;
  float lowest = 0, highest = 0;
  size_t outputStride = 0;  // elements from one row to the next

  size_t panels() const { return weights.count(); }
};

// Bytes from one prepared row to the next.
size_t avx2RowBytes(Avx2Form form, size_t inputs);

// Prepares `count` rows of `inputs` bytes that lie `stride` bytes apart. `flip` is 0x80 for int8,
// which makes inputs unsigned by adding 128, and 0 for uint8. `prepared` must not overlap `rows`,
// or be equal to it: in the forms of bytes, for rows that lie avx2RowBytes() apart. What is between
// such rows may be anything.
void prepareAvx2Rows(Avx2Form form, const uint8_t* rows, size_t stride, size_t count, size_t inputs,
                     uint8_t flip, uint8_t* prepared);

// Multiplies `count` prepared rows by panels [firstPanel, lastPanel); `output` is where the first
// row begins.
void multiplyAvx2(const Avx2Gemm& product, const uint8_t* prepared, size_t count, size_t firstPanel,
                  size_t lastPanel, uint8_t* output);

// The same with `parameters` of the rows, which are prepared with `flip` 0x80.
void multiplyAvx2Hybrid(const Avx2HybridGemm& product, const uint8_t* prepared,
                        const struct xnn_quantization_params* parameters, size_t count,
                        size_t firstPanel, size_t lastPanel, float* output);

}  // namespace hearth::cpu
