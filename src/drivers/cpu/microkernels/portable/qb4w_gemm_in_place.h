// SPDX-License-Identifier: Apache-2.0
// Matrix products of quantised rows and 4-bit weights with a scale for each block of inputs. The
// weights are read in place, in the model: for CPUs and sizes of blocks that Qb4Gemm does not take.
#pragma once

#include <cstddef>
#include <cstdint>

struct xnn_quantization_params;

namespace hearth::cpu {

// Weights [columns][inputs] of TENSOR_INT4 and their scales [columns][inputs / blockSize].
struct Int4Weights {
  const uint8_t* pairs = nullptr;
  const void* scales = nullptr;
  bool areScalesHalf = false;  // float16, else float32
  size_t inputs = 0;
  size_t columns = 0;
  size_t blockSize = 0;  // divides inputs
  // By column the sum of its weights as real numbers, from int4ColumnSum().
  const float* sums = nullptr;
};

// Rows [count][weights.inputs], and the parameters of each.
struct Int4Rows {
  const int8_t* numbers = nullptr;
  const struct xnn_quantization_params* parameters = nullptr;
  size_t count = 0;
};

// The sum of a column's weights as real numbers. Does not read weights.sums.
float int4ColumnSum(const Int4Weights& weights, size_t column);

// Computes output[row][column] for all rows and the columns [first, last); weights.columns floats
// lie between two rows.
void int4Multiply(const Int4Weights& weights, const Int4Rows& rows, size_t first, size_t last,
                  float* output);

}  // namespace hearth::cpu
