// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/float_layer.h"

#include <algorithm>
#include <vector>

#include "drivers/cpu/window_gather.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// Rows of one task, fewer where each takes much scratch memory (a hostile model may have windows of
// any size).
constexpr size_t kMostRows = 8 * kFloatRows;
constexpr size_t kScratchPerTask = size_t{512} << 10;
// Panels of one task, so that they stay in the second-level cache while all rows pass.
constexpr size_t kPanelBytesPerTask = size_t{256} << 10;
// Of a place of a window: with fewer the windows are gathered, since steps over them are short.
constexpr size_t kFewChannels = 16;
// Fewer tasks than this for a thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 4;

class FloatLayerKernel final : public Kernel {
 public:
  explicit FloatLayerKernel(const FloatLayer& layer)
      : layer_(layer),
        product_(layer.product),
        windows_(layer.geometry, sizeof(float), 0),
        rows_(layer.geometry.batch * layer.geometry.outputHeight * layer.geometry.outputWidth) {
    const Convolution& g = layer_.geometry;
    const bool isPixel = g.kernelHeight == 1 && g.kernelWidth == 1 && g.strideHeight == 1 &&
                         g.strideWidth == 1 && g.top + g.bottom + g.left + g.right == 0;
    way_ = isPixel                               ? Way::kDirect
           : g.groupInputChannels < kFewChannels ? Way::kGathered
                                                 : Way::kTaps;
    // Direct and gathered rows are one tap each.
    if (way_ != Way::kTaps) {
      product_.channels *= product_.taps;
      product_.taps = 1;
    } else {
      zeros_.resize(g.groupInputChannels);
    }
    const size_t scratch =
        way_ == Way::kGathered ? product_.channels * sizeof(float) : product_.taps * sizeof(float*);
    rowsPerTask_ = std::clamp(kScratchPerTask / scratch, kFloatRows, kMostRows);
    rowsPerTask_ -= rowsPerTask_ % kFloatRows;
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const size_t threads = threads::threadsOf(pool);
    const size_t taskRows = std::min(rows_, rowsPerTask_);
    pointersPerThread_ = taskRows * product_.taps;
    pointers_.resize(threads * pointersPerThread_);
    if (way_ == Way::kGathered) {
      gatheredPerThread_ = taskRows * product_.channels;
      gathered_.resize(threads * gatheredPerThread_);
    }
    return 0;
  }

  Status setup(std::span<void* const> addresses, void*) override {
    source_ = static_cast<const float*>(addresses[layer_.source]);
    destination_ = static_cast<float*>(addresses[layer_.destination]) + layer_.outputOffset;
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const size_t threads = threads::threadsOf(pool);
    const size_t chunks = (rows_ + rowsPerTask_ - 1) / rowsPerTask_;
    const size_t panels = product_.panels();
    const size_t panelBytes = product_.panelSize() * sizeof(float);
    size_t blocks = 1;
    // Weights that only one chunk of rows reads need no cache.
    if (chunks > 1) blocks = std::max(blocks, panels * panelBytes / kPanelBytesPerTask);
    if (threads > 1) blocks = std::max(blocks, (threads * kTasksPerThread + chunks - 1) / chunks);
    blocks = std::min(blocks, panels);
    const auto task = [&](size_t index, size_t thread) {
      const size_t block = index / chunks;
      const size_t first = index % chunks * rowsPerTask_;
      compute(first, std::min(rowsPerTask_, rows_ - first), block * panels / blocks,
              (block + 1) * panels / blocks, thread);
    };
    threads::forTasks(pool, chunks * blocks, task);
    return {};
  }

 private:
  enum class Way { kDirect, kGathered, kTaps };

  void compute(size_t first, size_t count, size_t firstPanel, size_t lastPanel, size_t thread) {
    const float** const pointers = pointers_.data() + thread * pointersPerThread_;
    const float* rows = source_ + first * product_.channels;
    if (way_ == Way::kGathered) {
      float* const gathered = gathered_.data() + thread * gatheredPerThread_;
      windows_.gather(reinterpret_cast<const uint8_t*>(source_), first, first + count,
                      reinterpret_cast<uint8_t*>(gathered));
      rows = gathered;
    }
    // Tile after tile, each with the rows of one tap after another.
    for (size_t row = 0; row < count; row += kFloatRows) {
      const size_t tile = std::min(kFloatRows, count - row);
      const float** const at = pointers + row * product_.taps;
      if (way_ == Way::kTaps) {
        for (size_t r = 0; r < tile; ++r) findTaps(first + row + r, at + r, tile);
      } else {
        for (size_t r = 0; r < tile; ++r) at[r] = rows + (row + r) * product_.channels;
      }
    }
    for (size_t row = 0; row < count; row += kFloatRows)
      multiplyFloats(product_, pointers + row * product_.taps, std::min(kFloatRows, count - row),
                     firstPanel, lastPanel, destination_ + (first + row) * product_.outputStride);
  }

  // Where the channels of each place of an output's window lie, `step` pointers apart.
  void findTaps(size_t row, const float** at, size_t step) const {
    const Convolution& g = layer_.geometry;
    const size_t x = row % g.outputWidth;
    const size_t line = row / g.outputWidth;
    const float* const image =
        source_ + line / g.outputHeight * g.inputHeight * g.inputWidth * g.groupInputChannels;
    const auto firstY = static_cast<int64_t>(line % g.outputHeight * g.strideHeight) - g.top;
    const auto firstX = static_cast<int64_t>(x * g.strideWidth) - g.left;
    for (uint32_t ky = 0; ky < g.kernelHeight; ++ky) {
      const int64_t inputY = firstY + int64_t{ky} * g.dilationHeight;
      const bool isInside = inputY >= 0 && inputY < static_cast<int64_t>(g.inputHeight);
      for (uint32_t kx = 0; kx < g.kernelWidth; ++kx, at += step) {
        const int64_t inputX = firstX + int64_t{kx} * g.dilationWidth;
        *at = isInside && inputX >= 0 && inputX < static_cast<int64_t>(g.inputWidth)
                  ? image +
                        (static_cast<size_t>(inputY) * g.inputWidth + static_cast<size_t>(inputX)) *
                            g.groupInputChannels
                  : zeros_.data();
      }
    }
  }

  const FloatLayer layer_;
  FloatProduct product_;
  const WindowGather windows_;
  const size_t rows_;
  size_t rowsPerTask_ = 0;
  Way way_ = Way::kDirect;
  std::vector<float> zeros_;  // in place of padding
  std::vector<const float*> pointers_;
  size_t pointersPerThread_ = 0;
  std::vector<float> gathered_;
  size_t gatheredPerThread_ = 0;
  const float* source_ = nullptr;
  float* destination_ = nullptr;
};

}  // namespace

bool isFloatLayer(const Convolution& geometry) {
  // XNNPACK packs one channel to one channel as a depthwise convolution.
  const bool isOneToOne = geometry.groupInputChannels == 1 && geometry.groupOutputChannels == 1;
  return !geometry.isDepthwise && geometry.groups == 1 && !isOneToOne;
}

Result<std::unique_ptr<Kernel>> makeFloatLayerKernel(FloatLayer layer, const PackedWeights& weights,
                                                     WeightPlace place) {
  const size_t bytes = layer.product.panels() * layer.product.panelSize() * sizeof(float);
  if (weights.sizeOf(place) < bytes)
    return fail(ErrorCode::kUnsupported, "A layer of {} bytes is packed to {}.", bytes,
                weights.sizeOf(place));
  layer.product.packed = reinterpret_cast<const float*>(weights.dataOf(place));
  return std::make_unique<FloatLayerKernel>(layer);
}

}  // namespace hearth::cpu
