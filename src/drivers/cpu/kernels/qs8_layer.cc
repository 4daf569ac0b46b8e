// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/qs8_layer.h"

#include <algorithm>

#include "drivers/cpu/kernels/packed_bytes.h"
#include "drivers/cpu/microkernels/im2col.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// Limits the rows of one task, so that they stay in the second-level cache beside the weights.
constexpr size_t kMostRows = 8 * kQs8Rows;
constexpr size_t kScratchPerTask = size_t{256} << 10;
// Blocks of about this many panels or more share a gathered input.
constexpr size_t kPanelsPerBlock = 2;
// Fewer tasks than this for a thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 4;

class Qs8LayerKernel final : public Kernel {
 public:
  explicit Qs8LayerKernel(const Qs8Layer& layer)
      : layer_(layer),
        windows_(layer.geometry, 1, static_cast<uint8_t>(layer.inputZero)),
        rowBytes_(windows_.windowBytes()) {
    const Convolution& g = layer_.geometry;
    isDirect_ = g.kernelHeight == 1 && g.kernelWidth == 1 && g.strideHeight == 1 &&
                g.strideWidth == 1 && g.top + g.bottom + g.left + g.right == 0;
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const size_t threads = threads::threadsOf(pool);
    const size_t rows = windows_.windowCount();
    rowsPerTask_ = std::clamp(kScratchPerTask / rowBytes_, kQs8Rows, kMostRows);
    if (threads > 1) rowsPerTask_ = std::min(rowsPerTask_, rows / (threads * kTasksPerThread));
    rowsPerTask_ = std::max(kQs8Rows, rowsPerTask_ - rowsPerTask_ % kQs8Rows);
    // Room for reading past the last row, whose last group of inputs may be incomplete.
    scratchPerThread_ = std::min(rows, rowsPerTask_) * rowBytes_ + kQs8Group;
    return threads * scratchPerThread_;
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    source_ = static_cast<const int8_t*>(addresses[layer_.source]);
    destination_ = static_cast<int8_t*>(addresses[layer_.destination]);
    scratch_ = static_cast<uint8_t*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const size_t threads = threads::threadsOf(pool);
    const size_t rows = windows_.windowCount();
    const size_t chunks = (rows + rowsPerTask_ - 1) / rowsPerTask_;
    const size_t panels = layer_.product.panels();
    size_t blocks = 1;
    if (threads > 1)
      blocks = std::clamp<size_t>((threads * kTasksPerThread + chunks - 1) / chunks, 1,
                                  (panels + kPanelsPerBlock - 1) / kPanelsPerBlock);
    const auto task = [&](size_t index, size_t thread) {
      const size_t block = index / chunks;
      const size_t first = index % chunks * rowsPerTask_;
      compute(first, std::min(rowsPerTask_, rows - first), block * panels / blocks,
              (block + 1) * panels / blocks, scratch_ + thread * scratchPerThread_);
    };
    threads::forTasks(pool, chunks * blocks, task);
    return {};
  }

 private:
  void compute(size_t first, size_t count, size_t firstPanel, size_t lastPanel,
               uint8_t* scratch) const {
    const int8_t* from = source_ + first * rowBytes_;
    if (!isDirect_) {
      windows_.gather(reinterpret_cast<const uint8_t*>(source_), first, first + count, scratch);
      from = reinterpret_cast<const int8_t*>(scratch);
    }
    makeUnsigned(from, count * rowBytes_, scratch);
    multiplyQs8(layer_.product, scratch, rowBytes_, count, firstPanel, lastPanel,
                destination_ + first * layer_.product.outputStride);
  }

  const Qs8Layer layer_;
  const Im2col windows_;
  const size_t rowBytes_;
  bool isDirect_ = false;
  size_t rowsPerTask_ = kQs8Rows;
  uint8_t* scratch_ = nullptr;
  size_t scratchPerThread_ = 0;
  const int8_t* source_ = nullptr;
  int8_t* destination_ = nullptr;
};

}  // namespace

bool isQs8Layer(const Convolution& g) {
  // XNNPACK packs one channel to one channel as a depthwise convolution, and pads the channels of
  // each place of a window.
  const bool isOneToOne = g.groupInputChannels == 1 && g.groupOutputChannels == 1;
  return !g.isDepthwise && g.groups == 1 && !isOneToOne &&
         (g.kernelHeight * g.kernelWidth == 1 || g.groupInputChannels % kQs8Group == 0);
}

Result<std::unique_ptr<Kernel>> makeQs8LayerKernel(Qs8Layer layer,
                                                   std::span<const uint8_t> packed) {
  HEARTH_ASSIGN(const uint8_t* const panels,
                packedBytes(packed, layer.product.panels() * layer.product.panelBytes()));
  layer.product.packed = panels;
  return std::make_unique<Qs8LayerKernel>(layer);
}

}  // namespace hearth::cpu
