// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "drivers/cpu/kernels/kernel.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {

// The tasks of a layer: chunks of its rows, which are those of the product or lines of the output,
// times blocks of its panels of weights.
class LayerTasks {
 public:
  // Calls compute(first row, last row, first panel, last panel, scratch) for each task.
  template <typename Compute>
  void run(threads::ThreadPool* pool, size_t panels, uint8_t* workspace,
           const Compute& compute) const {
    const size_t threads = threads::threadsOf(pool);
    const size_t chunks = (rows_ + rowsPerTask_ - 1) / rowsPerTask_;
    size_t blocks = 1;
    if (threads > 1)
      blocks = std::clamp<size_t>((threads * kTasksPerThread + chunks - 1) / chunks, 1,
                                  (panels + leastPanels_ - 1) / leastPanels_);
    threads::forTasks(pool, chunks * blocks, [&](size_t index, size_t thread) {
      const size_t block = index / chunks;
      const size_t first = index % chunks * rowsPerTask_;
      compute(first, std::min(rows_, first + rowsPerTask_), block * panels / blocks,
              (block + 1) * panels / blocks, workspace + thread * scratchPerThread_);
    });
  }

 protected:
  // A task has about `leastPanels` panels or more.
  explicit LayerTasks(size_t leastPanels) : leastPanels_(leastPanels) {}
  ~LayerTasks() = default;

  // Fewer tasks than this for a thread balance badly when threads run unevenly.
  static constexpr size_t kTasksPerThread = 4;

  size_t rows_ = 0;
  size_t rowsPerTask_ = 1;
  size_t scratchPerThread_ = 0;

 private:
  const size_t leastPanels_;
};

// An int8 layer that is computed in tasks. A Layer has a product, a source and a destination; Tasks
// are LayerTasks that reshape() divides.
template <typename Layer, typename Tasks>
class TaskKernel : public Kernel {
 public:
  explicit TaskKernel(const Layer& layer) : layer_(layer) {}

  Status setup(std::span<void* const> addresses, void* workspace) override {
    source_ = static_cast<const int8_t*>(addresses[layer_.source]);
    destination_ = static_cast<int8_t*>(addresses[layer_.destination]);
    workspace_ = static_cast<uint8_t*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    tasks_.run(pool, layer_.product.panels(), workspace_,
               [&](size_t first, size_t last, size_t firstPanel, size_t lastPanel,
                   uint8_t* scratch) { compute(first, last, firstPanel, lastPanel, scratch); });
    return {};
  }

 protected:
  // Computes one task in scratch memory of its own.
  virtual void compute(size_t first, size_t last, size_t firstPanel, size_t lastPanel,
                       uint8_t* scratch) const = 0;

  const Layer layer_;
  Tasks tasks_;
  const int8_t* source_ = nullptr;
  int8_t* destination_ = nullptr;

 private:
  uint8_t* workspace_ = nullptr;
};

}  // namespace hearth::cpu
