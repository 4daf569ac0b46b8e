// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "drivers/cpu/kernels/task_kernel.h"
#include "drivers/cpu/microkernels/x86/avx512/qs8_gemm.h"

namespace hearth::cpu {

// How an int8 layer is divided into tasks, each of which gathers some rows of inputs in memory of
// its own and multiplies them with some panels of the weights.
class ByteTasks : public LayerTasks {
 public:
  // All rows of a task are multiplied with this many panels before the next panels. Tasks with
  // about so many panels or more share a gathered input.
  static constexpr size_t kPanelsPerBlock = 2;
  static constexpr size_t kScratchPerTask = size_t{256} << 10;

  ByteTasks() : LayerTasks(kPanelsPerBlock) {}

  // Divides `rows` of `rowBytes` and returns the size of the workspace. `slack`: room for reading
  // past the last row, whose last group of inputs may be incomplete. `scratchPerTask` limits the
  // rows of a task.
  size_t divide(size_t threads, size_t rows, size_t rowBytes, size_t slack = kQs8Group,
                size_t scratchPerTask = kScratchPerTask) {
    rows_ = rows;
    rowsPerTask_ = std::clamp(scratchPerTask / std::max<size_t>(1, rowBytes), kQs8Rows, kMostRows);
    if (threads > 1) rowsPerTask_ = std::min(rowsPerTask_, rows / (threads * kTasksPerThread));
    rowsPerTask_ = std::max(kQs8Rows, rowsPerTask_ - rowsPerTask_ % kQs8Rows);
    // Each task reads all weights, which takes long for a small rest of the rows.
    const size_t rest = rows % rowsPerTask_;
    if (threads <= 1 && rows > rowsPerTask_ && rest <= rowsPerTask_ / 4)
      rowsPerTask_ += (rest + rows / rowsPerTask_ - 1) / (rows / rowsPerTask_);
    scratchPerThread_ = std::min(rows, rowsPerTask_) * rowBytes + slack;
    return threads * scratchPerThread_;
  }

 private:
  // Limits the rows of one task, so that they stay in the second-level cache beside the weights.
  static constexpr size_t kMostRows = 8 * kQs8Rows;
};

// A layer that is computed in such tasks.
template <typename Layer>
class ByteTaskKernel : public TaskKernel<Layer, ByteTasks> {
 public:
  using TaskKernel<Layer, ByteTasks>::TaskKernel;
};

}  // namespace hearth::cpu
