// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/float_layer.h"

#include <algorithm>
#include <vector>

#include "drivers/cpu/window_gather.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// Tiles of rows of one task, fewer where each takes much scratch memory (a hostile model may have
// windows of any size).
constexpr size_t kMostTiles = 8;
constexpr size_t kScratchPerTask = size_t{512} << 10;
// Panels of one task, so that they stay in the second-level cache while all rows pass.
constexpr size_t kPanelBytesPerTask = size_t{256} << 10;
// Of a place of a window: with fewer, steps over them are short, and those over its rows are used.
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
    way_ = isPixel ? Way::kDirect : g.groupInputChannels < kFewChannels ? Way::kRows : Way::kTaps;
    // A row of a window, or of what is gathered of it, is one tap.
    if (way_ == Way::kRows) {
      product_.channels *= g.kernelWidth;
      product_.taps = g.kernelHeight;
    }
    if (way_ != Way::kDirect) zeros_.resize(product_.channels);
    const size_t scratch =
        way_ == Way::kRows ? windows_.windowBytes() : product_.taps * sizeof(float*);
    rowsPerTask_ =
        tileRows_ * std::clamp<size_t>(kScratchPerTask / scratch / tileRows_, 1, kMostTiles);
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const size_t threads = threads::threadsOf(pool);
    const size_t taskRows = std::min(rows_, rowsPerTask_);
    pointersPerThread_ = taskRows * product_.taps;
    pointers_.resize(threads * pointersPerThread_);
    if (way_ == Way::kRows) {
      gatheredPerThread_ = taskRows * product_.taps * product_.channels;
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
    // Weights that only one tile of rows reads need no cache.
    if (rows_ > tileRows_) blocks = std::max(blocks, panels * panelBytes / kPanelBytesPerTask);
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
  enum class Way { kDirect, kRows, kTaps };

  void compute(size_t first, size_t count, size_t firstPanel, size_t lastPanel, size_t thread) {
    const float** const pointers = pointers_.data() + thread * pointersPerThread_;
    // Tile after tile, each with the rows of one tap after another.
    for (size_t row = 0; row < count; row += tileRows_) {
      const size_t tile = std::min(tileRows_, count - row);
      const float** const at = pointers + row * product_.taps;
      for (size_t r = 0; r < tile; ++r) findInputs(first + row + r, row + r, thread, at + r, tile);
    }
    for (size_t row = 0; row < count; row += tileRows_)
      multiplyFloats(product_, pointers + row * product_.taps, std::min(tileRows_, count - row),
                     firstPanel, lastPanel, destination_ + (first + row) * product_.outputStride);
  }

  // Where the channels of each tap of an output lie, `step` pointers apart. It is the task's row
  // `index`, on the thread `thread`.
  void findInputs(size_t row, size_t index, size_t thread, const float** at, size_t step) {
    if (way_ == Way::kDirect) {
      *at = source_ + row * product_.channels;
      return;
    }
    const Convolution& g = layer_.geometry;
    const size_t x = row % g.outputWidth;
    const size_t line = row / g.outputWidth;
    const float* const image =
        source_ + line / g.outputHeight * g.inputHeight * g.inputWidth * g.groupInputChannels;
    const auto firstY = static_cast<int64_t>(line % g.outputHeight * g.strideHeight) - g.top;
    const auto firstX = static_cast<int64_t>(x * g.strideWidth) - g.left;
    if (way_ == Way::kRows && (g.dilationWidth > 1 || firstX < 0 ||
                               firstX + g.kernelWidth > static_cast<int64_t>(g.inputWidth))) {
      float* const window = gathered_.data() + thread * gatheredPerThread_ +
                            index * product_.taps * product_.channels;
      windows_.gather(reinterpret_cast<const uint8_t*>(source_), row, row + 1,
                      reinterpret_cast<uint8_t*>(window));
      for (size_t tap = 0; tap < product_.taps; ++tap, at += step)
        *at = window + tap * product_.channels;
      return;
    }
    const uint32_t places = way_ == Way::kRows ? 1 : g.kernelWidth;  // taps of a row
    for (uint32_t ky = 0; ky < g.kernelHeight; ++ky) {
      const int64_t inputY = firstY + int64_t{ky} * g.dilationHeight;
      const bool isInside = inputY >= 0 && inputY < static_cast<int64_t>(g.inputHeight);
      for (uint32_t kx = 0; kx < places; ++kx, at += step) {
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
  const size_t tileRows_ = floatTile().rows;
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
