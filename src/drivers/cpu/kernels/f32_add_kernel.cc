// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/f32_add_kernel.h"

#include "base/vector_dispatch.h"
#include "drivers/cpu/kernels/function_kernel.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

void addClamped(const float* a, const float* b, float* sum, size_t rows, size_t columns,
                float lowest, float highest) {
  base::onWidestVectors([=]() HEARTH_INLINE {
    for (size_t row = 0; row < rows; ++row) {
      const float* from = a + row * columns;
      float* to = sum + row * columns;
#pragma GCC ivdep
      for (size_t i = 0; i < columns; ++i) {
        const float value = from[i] + b[i];
        // In this order a NaN stays a NaN, as in XNNPACK.
        const float raised = value < lowest ? lowest : value;
        to[i] = raised > highest ? highest : raised;
      }
    }
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeF32AddKernel(F32Add add) {
  return makeFunctionKernel([add](const KernelRun& run) -> Status {
    const auto* a = run.at<const float>(add.a);
    const auto* b = run.at<const float>(add.b);
    auto* sum = run.at<float>(add.sum);
    // A single row is divided among the threads by columns.
    const bool isRow = add.rows == 1;
    const size_t columns = isRow ? 1 : add.columns;
    threads::forRanges(run.pool, isRow ? add.columns : add.rows,
                       threads::grainOf(columns * sizeof(float)),
                       [&](uint64_t begin, uint64_t end) {
                         addClamped(a + begin * columns, isRow ? b + begin : b,
                                    sum + begin * columns, isRow ? 1 : end - begin,
                                    isRow ? end - begin : columns, add.lowest, add.highest);
                       });
    return {};
  });
}

}  // namespace hearth::cpu
