// SPDX-License-Identifier: Apache-2.0
// Products on AVX-512 VNNI, AVX2 and NEON of 8-bit rows that are quantised while a model runs and
// 4-bit weights with a scale for each block of inputs. No known kernel of XNNPACK for x86-64 is
// right for more than one row with such weights; on ARM64 nobody has looked.
#pragma once

#include <cstddef>
#include <cstdint>

struct xnn_quantization_params;

namespace hearth::cpu {

// The most rows of one call of any inner kernel, and the columns of a panel.
inline constexpr size_t kInt4Rows = 12;
inline constexpr size_t kInt4Columns = 16;

// Whether this CPU has the instructions and the product can have blocks of this size. Thread-safe.
bool hasInt4Product(size_t inputs, size_t blockSize);

// Whether the product also serves weights with one scale for each column better than XNNPACK's
// product of 8-bit weights. NEON without dot product takes 1.2 times the instructions of that.
// Thread-safe.
bool hasInt4ChannelProduct(size_t inputs);

// output[row][column] = clamp(bias[column] + rowScale[row] * (sum over blocks of the block's scale
// times its sum of products)); the zero point of a row is subtracted from its numbers.
struct Qb4Gemm {
  // Panels of 16 columns: the sums of their weights as real numbers and their biases (float32),
  // then for each block 16 scales and for each 8 inputs 16 x 4 bytes. The low halves of these are
  // the weights of the first four inputs plus 8, the high halves those of the others. Padding
  // columns are zero.
  const uint8_t* packed = nullptr;
  size_t inputs = 0;
  size_t columns = 0;
  size_t blockSize = 0;        // a multiple of 8 that divides inputs
  bool areScalesHalf = false;  // float16, else float32
  // With one block: panels begin with sums of the weights as int32, and the zero point is
  // subtracted in integers, so that the only roundings are those of the two scales and the bias, in
  // the order of XNNPACK's products of 8-bit weights.
  bool areSumsWhole = false;
  float lowest = 0, highest = 0;
  size_t outputStride = 0;  // elements from one row to the next

  size_t panels() const { return (columns + kInt4Columns - 1) / kInt4Columns; }
  size_t blocks() const { return inputs / blockSize; }
  size_t scaleBytes() const { return areScalesHalf ? 2 : 4; }
  size_t blockBytes() const { return kInt4Columns * (scaleBytes() + blockSize / 2); }
  size_t panelBytes() const { return 2 * kInt4Columns * sizeof(float) + blocks() * blockBytes(); }
};

// Packs all panels of weights [columns][inputs] of TENSOR_INT4 with scales [columns][blocks] into
// `packed`; `bias` may be null. Does not read `product.packed`.
void packInt4(const Qb4Gemm& product, const uint8_t* weights, const void* scales, const float* bias,
              uint8_t* packed);

// Bytes from one prepared row to the next.
size_t int4RowBytes(const Qb4Gemm& product);

// Prepares a row for the product: its numbers, and for each block the correction for the 8 that is
// added to all weights. `prepared` has int4RowBytes() bytes.
void prepareInt4Row(const Qb4Gemm& product, const int8_t* numbers, uint8_t* prepared);

// Multiplies `rows` prepared rows by panels [firstPanel, lastPanel); `parameters` are those of the
// rows, and `output` is where the first row begins.
void multiplyInt4(const Qb4Gemm& product, const uint8_t* prepared,
                  const struct xnn_quantization_params* parameters, size_t rows, size_t firstPanel,
                  size_t lastPanel, float* output);

}  // namespace hearth::cpu
