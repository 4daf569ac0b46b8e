// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/qs8_gemm.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {

// How an int8 layer is divided into tasks, each of which gathers some rows of inputs in memory of
// its own and multiplies them with some panels of the weights.
class Qs8Tasks {
 public:
  // All rows of a task are multiplied with this many panels before the next panels. Tasks with
  // about so many panels or more share a gathered input.
  static constexpr size_t kPanelsPerBlock = 2;
  static constexpr size_t kScratchPerTask = size_t{256} << 10;

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

  // Calls compute(first row, last row, first panel, last panel, scratch) for each task.
  template <typename Compute>
  void run(threads::ThreadPool* pool, size_t panels, uint8_t* workspace,
           const Compute& compute) const {
    const size_t threads = threads::threadsOf(pool);
    const size_t chunks = (rows_ + rowsPerTask_ - 1) / rowsPerTask_;
    size_t blocks = 1;
    if (threads > 1)
      blocks = std::clamp<size_t>((threads * kTasksPerThread + chunks - 1) / chunks, 1,
                                  (panels + kPanelsPerBlock - 1) / kPanelsPerBlock);
    threads::forTasks(pool, chunks * blocks, [&](size_t index, size_t thread) {
      const size_t block = index / chunks;
      const size_t first = index % chunks * rowsPerTask_;
      compute(first, std::min(rows_, first + rowsPerTask_), block * panels / blocks,
              (block + 1) * panels / blocks, workspace + thread * scratchPerThread_);
    });
  }

 private:
  // Limits the rows of one task, so that they stay in the second-level cache beside the weights.
  static constexpr size_t kMostRows = 8 * kQs8Rows;
  // Fewer tasks than this for a thread balance badly when threads run unevenly.
  static constexpr size_t kTasksPerThread = 4;

  size_t rows_ = 0;
  size_t rowsPerTask_ = kQs8Rows;
  size_t scratchPerThread_ = 0;
};

// A layer that is computed in such tasks. A Layer has a product, a source and a destination.
template <typename Layer>
class Qs8TaskKernel : public Kernel {
 public:
  explicit Qs8TaskKernel(const Layer& layer) : layer_(layer) {}

  Status setup(std::span<void* const> addresses, void* workspace) override {
    source_ = static_cast<const int8_t*>(addresses[layer_.source]);
    destination_ = static_cast<int8_t*>(addresses[layer_.destination]);
    scratch_ = static_cast<uint8_t*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    tasks_.run(pool, layer_.product.panels(), scratch_,
               [&](size_t first, size_t last, size_t firstPanel, size_t lastPanel,
                   uint8_t* scratch) { compute(first, last, firstPanel, lastPanel, scratch); });
    return {};
  }

 protected:
  // Computes one task in scratch memory of its own.
  virtual void compute(size_t first, size_t last, size_t firstPanel, size_t lastPanel,
                       uint8_t* scratch) const = 0;

  const Layer layer_;
  Qs8Tasks tasks_;
  const int8_t* source_ = nullptr;
  int8_t* destination_ = nullptr;

 private:
  uint8_t* scratch_ = nullptr;
};

}  // namespace hearth::cpu
