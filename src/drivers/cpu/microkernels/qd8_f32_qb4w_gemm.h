// SPDX-License-Identifier: Apache-2.0
// Products of rows of 8-bit numbers that are quantised while a model runs and weights of 4 bits
// with a scale for each run of inputs, on AVX-512 VNNI. No known kernel of XNNPACK's is right for
// more than one row of such weights.
#pragma once

#include <cstddef>
#include <cstdint>

struct xnn_quantization_params;

namespace hearth::cpu {

// Rows that one call of the inner kernel computes at most, and columns that a panel has.
inline constexpr size_t kInt4Rows = 12;
inline constexpr size_t kInt4Columns = 16;

// Whether this CPU has the instructions, and such runs are of a size that the product can have.
// Thread-safe.
bool hasInt4Product(size_t inputs, size_t blockSize);

// output[row][column] = clamp(bias[column] + rowScale[row] * (sum over blocks of the block's scale
// times its sum of products)), where rows are less their zero points.
struct Qb4Gemm {
  // For each 16 columns the sums of their weights as real numbers and their biases (float32), then
  // for each block 16 scales and for each 8 inputs 16 x 4 bytes: the low halves are weights plus 8
  // of the first four inputs, the high ones of the others. What is beyond the columns is zero.
  const uint8_t* packed = nullptr;
  size_t inputs = 0;
  size_t columns = 0;
  size_t blockSize = 0;        // a multiple of 8 that divides inputs
  bool areScalesHalf = false;  // float16, else float32
  float lowest = 0, highest = 0;
  size_t outputStride = 0;  // from one row to the next, in elements

  size_t panels() const { return (columns + kInt4Columns - 1) / kInt4Columns; }
  size_t blocks() const { return inputs / blockSize; }
  size_t scaleBytes() const { return areScalesHalf ? 2 : 4; }
  size_t blockBytes() const { return kInt4Columns * (scaleBytes() + blockSize / 2); }
  size_t panelBytes() const { return 2 * kInt4Columns * sizeof(float) + blocks() * blockBytes(); }
};

// All panels of weights [columns][inputs] of TENSOR_INT4 with scales [columns][blocks]; `bias` may
// be null. `product.packed` is not looked at.
void packInt4(const Qb4Gemm& product, const uint8_t* weights, const void* scales, const float* bias,
              uint8_t* packed);

// Bytes from one prepared row to the next.
size_t int4RowBytes(const Qb4Gemm& product);

// A row as the product takes it: its numbers, and for each block what makes good for the 8 that all
// weights have too much.
void prepareInt4Row(const Qb4Gemm& product, const int8_t* numbers, uint8_t* prepared);

// `rows` prepared rows with their parameters times panels [firstPanel, lastPanel); output is where
// the first row begins.
void multiplyInt4(const Qb4Gemm& product, const uint8_t* prepared,
                  const struct xnn_quantization_params* parameters, size_t rows, size_t firstPanel,
                  size_t lastPanel, float* output);

}  // namespace hearth::cpu
