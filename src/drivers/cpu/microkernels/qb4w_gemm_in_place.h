// SPDX-License-Identifier: Apache-2.0
// Matrix products of quantised rows and weights of 4 bits with a scale for each run of inputs, read
// from where the model has them: for CPUs and runs that Qb4Gemm does not do.
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
  // For each column the sum of its weights as real numbers, from int4ColumnSum().
  const float* sums = nullptr;
};

// Rows of weights.inputs numbers each, one after another.
struct Int4Rows {
  const int8_t* numbers = nullptr;
  const struct xnn_quantization_params* parameters = nullptr;
  size_t count = 0;
};

// Without weights.sums.
float int4ColumnSum(const Int4Weights& weights, size_t column);

// output[row][column] = the product for all rows and the columns [first, last), weights.columns
// floats from one row to the next.
void int4Multiply(const Int4Weights& weights, const Int4Rows& rows, size_t first, size_t last,
                  float* output);

}  // namespace hearth::cpu
