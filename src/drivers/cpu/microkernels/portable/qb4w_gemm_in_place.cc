// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/portable/qb4w_gemm_in_place.h"

#include <hearth_xnnpack.h>

#include <vector>

#include "base/vector_dispatch.h"
#include "ops/half.h"
#include "ops/int4.h"

namespace hearth::cpu {
namespace {

float scaleAt(const Int4Weights& weights, size_t index) {
  return weights.areScalesHalf
             ? static_cast<float>(static_cast<const ops::Half*>(weights.scales)[index])
             : static_cast<const float*>(weights.scales)[index];
}

void unpackColumn(const Int4Weights& weights, size_t column, int8_t* numbers) {
  for (size_t i = 0; i < weights.inputs; ++i)
    numbers[i] = ops::int4At(weights.pairs, column * weights.inputs + i);
}

int32_t dot(const int8_t* a, const int8_t* b, size_t count) {
  int32_t result = 0;
  base::onWidestVectors([&]() HEARTH_INLINE {
    int32_t sum = 0;
    for (size_t i = 0; i < count; ++i) sum += int32_t{a[i]} * b[i];
    result = sum;
  });
  return result;
}

}  // namespace

float int4ColumnSum(const Int4Weights& weights, size_t column) {
  const size_t blocks = weights.inputs / weights.blockSize;
  std::vector<int8_t> numbers(weights.inputs);
  unpackColumn(weights, column, numbers.data());
  double sum = 0.0;
  for (size_t b = 0; b < blocks; ++b) {
    int32_t part = 0;
    for (size_t i = 0; i < weights.blockSize; ++i) part += numbers[b * weights.blockSize + i];
    sum += static_cast<double>(scaleAt(weights, column * blocks + b)) * part;
  }
  return static_cast<float>(sum);
}

void int4Multiply(const Int4Weights& weights, const Int4Rows& rows, size_t first, size_t last,
                  float* output) {
  const size_t blocks = weights.inputs / weights.blockSize;
  std::vector<int8_t> numbers(weights.inputs);
  for (size_t column = first; column < last; ++column) {
    unpackColumn(weights, column, numbers.data());
    for (size_t r = 0; r < rows.count; ++r) {
      const int8_t* row = rows.numbers + r * weights.inputs;
      float sum = 0.0f;
      for (size_t b = 0; b < blocks; ++b)
        sum += scaleAt(weights, column * blocks + b) *
               static_cast<float>(dot(row + b * weights.blockSize,
                                      numbers.data() + b * weights.blockSize, weights.blockSize));
      const float zeroPoint = static_cast<float>(rows.parameters[r].zero_point);
      output[r * weights.columns + column] =
          rows.parameters[r].scale * (sum - zeroPoint * weights.sums[column]);
    }
  }
}

}  // namespace hearth::cpu
