// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/qd8_panels_layer.h"

#include <hearth_xnnpack.h>

#include <algorithm>

#include "drivers/cpu/kernels/panel_blocks.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_qd8_row.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_strassen.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

constexpr size_t kLine = 64;
// Limits the scratch memory of many rows; prepared ones are 3.5 times as large as their numbers.
constexpr size_t kMostRows = 256;
// For the product of many rows widening weights takes as long as ten rows or so.
constexpr size_t kManyRows = 32;
// Fewer tasks than this for a thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 16;

// What the kernels for one row and for many have in common.
class PanelsLayerKernel : public Kernel {
 public:
  PanelsLayerKernel(const Qd8Layer& layer, const Avx2Qd8Panels& product)
      : layer_(layer), product_(product) {}

  Status setup(std::span<void* const> addresses, void* workspace) override {
    numbers_ = static_cast<const int8_t*>(addresses[layer_.source.numbers]);
    parameters_ =
        static_cast<const struct xnn_quantization_params*>(addresses[layer_.source.parameters]);
    destination_ = static_cast<float*>(addresses[layer_.destination]) + layer_.outputOffset;
    workspace_ = static_cast<uint8_t*>(workspace);
    return {};
  }

 protected:
  const Qd8Layer layer_;
  const Avx2Qd8Panels product_;
  const int8_t* numbers_ = nullptr;
  const struct xnn_quantization_params* parameters_ = nullptr;
  float* destination_ = nullptr;
  uint8_t* workspace_ = nullptr;
};

class RowKernel final : public PanelsLayerKernel {
 public:
  using PanelsLayerKernel::PanelsLayerKernel;

  Result<size_t> reshape(threads::ThreadPool*) override {
    return qd8RowNumbers(product_) * sizeof(int16_t);
  }

  Status run(threads::ThreadPool* pool) override {
    auto* const row = reinterpret_cast<int16_t*>(workspace_);
    widenQd8Row(product_, numbers_, row);
    const size_t panels = product_.panels();
    const size_t blocks = panelBlocks(panels, 1, 1, threads::threadsOf(pool), kTasksPerThread);
    threads::forTasks(pool, blocks, [&](size_t block, size_t) {
      multiplyQd8Row(product_, row, *parameters_, block * panels / blocks,
                     (block + 1) * panels / blocks, destination_);
    });
    return {};
  }
};

class FewRowsKernel final : public PanelsLayerKernel {
 public:
  using PanelsLayerKernel::PanelsLayerKernel;

  Result<size_t> reshape(threads::ThreadPool*) override {
    return layer_.rows * qd8RowNumbers(product_) * sizeof(int16_t);
  }

  Status run(threads::ThreadPool* pool) override {
    auto* const rows = reinterpret_cast<int16_t*>(workspace_);
    for (size_t row = 0; row < layer_.rows; ++row)
      widenQd8Row(product_, numbers_ + row * product_.inputs, rows + row * qd8RowNumbers(product_));
    const size_t panels = product_.panels();
    const size_t blocks = panelBlocks(panels, 1, 1, threads::threadsOf(pool), kTasksPerThread);
    threads::forTasks(pool, blocks, [&](size_t block, size_t) {
      multiplyQd8Rows(product_, rows, parameters_, layer_.rows, block * panels / blocks,
                      (block + 1) * panels / blocks, destination_);
    });
    return {};
  }
};

class ManyRowsKernel final : public PanelsLayerKernel {
 public:
  ManyRowsKernel(const Qd8Layer& layer, const Avx2Qd8Panels& product)
      : PanelsLayerKernel(layer, product),
        passes_((layer.rows + kMostRows - 1) / kMostRows),
        rowsBytes_(toLine(strassenRowBytes(product, mostRows()))),
        scratchBytes_(toLine(strassenScratch(product, mostRows()))) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return rowsBytes_ + threads::threadsOf(pool) * scratchBytes_;
  }

  Status run(threads::ThreadPool* pool) override {
    for (size_t pass = 0; pass < passes_; ++pass) {
      // Passes have nearly equal numbers of rows.
      const size_t first = pass * layer_.rows / passes_;
      computeRows(pool, first, (pass + 1) * layer_.rows / passes_ - first);
    }
    return {};
  }

 private:
  static size_t toLine(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
  size_t mostRows() const { return (layer_.rows + passes_ - 1) / passes_; }

  void computeRows(threads::ThreadPool* pool, size_t first, size_t rows) const {
    threads::forTasks(pool, strassenSteps(product_, rows), [&](size_t step, size_t) {
      prepareStrassenRows(product_, numbers_ + first * product_.inputs, rows, step, step + 1,
                          workspace_);
    });
    threads::forTasks(pool, strassenBlocks(product_), [&](size_t block, size_t thread) {
      multiplyStrassen(product_, workspace_, parameters_ + first, rows, block, block + 1,
                       workspace_ + rowsBytes_ + thread * scratchBytes_,
                       destination_ + first * product_.outputStride);
    });
  }

  const size_t passes_;
  const size_t rowsBytes_;     // of the prepared rows of a pass
  const size_t scratchBytes_;  // of a thread
};

}  // namespace

bool isQd8PanelsLayerFaster(size_t rows, size_t inputs, size_t columns) {
  constexpr size_t kFewestInputs = 256;
  // With fewer columns than a panel has, XNNPACK packs in another layout.
  if (rows == 1) return columns >= Avx2Qd8Panels::kColumns;
  return inputs >= kFewestInputs && columns >= 2 * kStrassenColumns;
}

std::unique_ptr<Kernel> makeQd8PanelsLayerKernel(const Qd8Layer& layer,
                                                 const Avx2Qd8Panels& product) {
  if (layer.rows == 1) return std::make_unique<RowKernel>(layer, product);
  if (layer.rows < kManyRows) return std::make_unique<FewRowsKernel>(layer, product);
  return std::make_unique<ManyRowsKernel>(layer, product);
}

}  // namespace hearth::cpu
