// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/amx_layer.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "drivers/cpu/kernels/packed_bytes.h"
#include "drivers/cpu/kernels/task_kernel.h"
#include "drivers/cpu/microkernels/portable/im2col.h"

namespace hearth::cpu {
namespace {

// Bytes of inputs that a task reads beside its weights: both stay in the second-level cache.
constexpr size_t kBytesPerTask = size_t{384} << 10;

size_t roundedUp(size_t number, size_t step) {
  return (number + step - 1) / step * step;
}

// Tasks whose rows are rows of the product or lines of the output.
class AmxTasks : public LayerTasks {
 public:
  AmxTasks() : LayerTasks(1) {}

  // Chunks have multiples of `step` rows, of `rowBytes` inputs each.
  void divide(size_t threads, size_t rows, size_t rowBytes, size_t step) {
    rows_ = rows;
    size_t most = kBytesPerTask / std::max<size_t>(1, rowBytes);
    if (threads > 1) most = std::min(most, rows / (threads * kTasksPerThread));
    most = std::max(most, step);
    // Chunks are nearly equal: each reads all weights, which takes long for a small rest.
    const size_t chunks = std::max<size_t>(1, (rows + most - 1) / most);
    rowsPerTask_ = std::max(step, roundedUp((rows + chunks - 1) / chunks, step));
  }
  size_t mostRows() const { return std::min(rows_, rowsPerTask_); }

  // Gives each thread `scratchBytes` and returns the size of the workspace.
  size_t giveScratch(size_t threads, size_t scratchBytes) {
    scratchPerThread_ = roundedUp(scratchBytes, kAmxInputs);
    return threads * scratchPerThread_;
  }
};

// What all kernels of such layers share.
class AmxLayerKernel : public TaskKernel<AmxLayer, AmxTasks> {
 public:
  using TaskKernel::TaskKernel;

 protected:
  int8_t* outputOf(size_t pixel) const { return destination_ + pixel * layer_.product.columns; }
};

// Rows are pixels where they lie, or windows that are gathered first.
class AmxRowsKernel final : public AmxLayerKernel {
 public:
  explicit AmxRowsKernel(const AmxLayer& layer)
      : AmxLayerKernel(layer),
        windows_(layer.geometry, 1, static_cast<uint8_t>(layer.inputZero)),
        isDirect_(layer.geometry.isOverPixels()),
        stride_(isDirect_ ? windows_.windowBytes() : layer.product.blocks() * kAmxInputs),
        tileBytes_((kAmxRows - 1) * stride_ + layer.product.blocks() * kAmxInputs) {
    for (size_t block = 0; block < layer.product.blocks(); ++block)
      offsets_.push_back(block * kAmxInputs);
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const size_t threads = threads::threadsOf(pool);
    tasks_.divide(threads, windows_.windowCount(), stride_, kAmxRows);
    return tasks_.giveScratch(
        threads, isDirect_ ? 2 * tileBytes_ : roundedUp(tasks_.mostRows(), kAmxRows) * stride_);
  }

 private:
  void compute(size_t first, size_t last, size_t firstPanel, size_t lastPanel,
               uint8_t* scratch) const override {
    const size_t sourceBytes = windows_.windowCount() * stride_;
    // Tiles from this row on are read from the scratch memory.
    size_t firstCopied = first;
    if (!isDirect_) {
      windows_.gather(reinterpret_cast<const uint8_t*>(source_), first, last, scratch, stride_);
    } else {
      while (firstCopied < last && firstCopied * stride_ + tileBytes_ <= sourceBytes)
        firstCopied += kAmxRows;
      // Those that would read behind the tensor: they begin less than tileBytes_ before its end.
      if (firstCopied < last)
        std::memcpy(scratch, source_ + firstCopied * stride_, sourceBytes - firstCopied * stride_);
    }
    std::vector<AmxTile> tiles;
    for (size_t row = first; row < last; row += kAmxRows) {
      AmxTile& tile = tiles.emplace_back();
      tile.rows = row < firstCopied
                      ? source_ + row * stride_
                      : reinterpret_cast<const int8_t*>(scratch) + (row - firstCopied) * stride_;
      for (size_t r = 0; r < std::min(kAmxRows, last - row); ++r)
        tile.outputs[r] = outputOf(row + r);
    }
    multiplyAmx(layer_.product, tiles, stride_, offsets_, firstPanel, lastPanel);
  }

  const Im2col windows_;
  const bool isDirect_;
  const size_t stride_;
  // From the begin of a tile's first row to the end of what is read of its last one.
  const size_t tileBytes_;
  std::vector<size_t> offsets_;
};

// Rows are the pixels of a copy of the image with its padding. Windows at neighbouring pixels
// overlap there, so nothing is gathered; those that begin in the right margin are computed in vain.
class AmxImageKernel final : public AmxLayerKernel {
 public:
  explicit AmxImageKernel(const AmxLayer& layer)
      : AmxLayerKernel(layer),
        pixelBytes_(layer.geometry.groupInputChannels),
        width_(paddedWidth(layer.geometry)),
        reach_((layer.geometry.kernelHeight - 1) * size_t{layer.geometry.dilationHeight}) {
    const Convolution& g = layer.geometry;
    for (size_t y = 0; y < g.kernelHeight; ++y)
      for (size_t x = 0; x < g.kernelWidth; ++x)
        for (size_t channel = 0; channel < pixelBytes_; channel += kAmxInputs)
          offsets_.push_back((y * g.dilationHeight * width_ + x * g.dilationWidth) * pixelBytes_ +
                             channel);
  }

  // Blocks of inputs must not reach into the next place of a window, and the next pixel must belong
  // to the next output.
  static bool takes(const Convolution& g) {
    return g.groupInputChannels % kAmxInputs == 0 && g.strideHeight == 1 && g.strideWidth == 1 &&
           !g.isOverPixels() &&
           g.outputWidth + (g.kernelWidth - 1) * size_t{g.dilationWidth} == paddedWidth(g);
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const Convolution& g = layer_.geometry;
    const size_t threads = threads::threadsOf(pool);
    tasks_.divide(threads, g.batch * g.outputHeight, width_ * pixelBytes_, 1);
    return tasks_.giveScratch(
        threads, copiedPixels(std::min(tasks_.mostRows(), g.outputHeight)) * pixelBytes_);
  }

 private:
  static size_t paddedWidth(const Convolution& g) { return g.left + g.inputWidth + g.right; }

  // Pixels of the copy that are read for so many lines of the output.
  size_t copiedPixels(size_t lines) const {
    const Convolution& g = layer_.geometry;
    return roundedUp(lines * width_, kAmxRows) + reach_ * width_ +
           (g.kernelWidth - 1) * size_t{g.dilationWidth};
  }

  void compute(size_t first, size_t last, size_t firstPanel, size_t lastPanel,
               uint8_t* scratch) const override {
    const size_t height = layer_.geometry.outputHeight;
    while (first < last) {
      const size_t line = first % height;
      const size_t count = std::min(height - line, last - first);
      computeLines(first / height, line, count, firstPanel, lastPanel, scratch);
      first += count;
    }
  }

  // Computes `count` lines of one image.
  void computeLines(size_t image, size_t line, size_t count, size_t firstPanel, size_t lastPanel,
                    uint8_t* scratch) const {
    const Convolution& g = layer_.geometry;
    const int8_t* const pixels = source_ + image * g.inputHeight * g.inputWidth * pixelBytes_;
    for (size_t y = 0; y < count + reach_; ++y)
      copyLine(pixels, static_cast<int64_t>(line + y) - int64_t{g.top},
               scratch + y * width_ * pixelBytes_);
    const size_t firstOutput = (image * g.outputHeight + line) * g.outputWidth;
    std::vector<AmxTile> tiles((count * width_ + kAmxRows - 1) / kAmxRows);
    for (size_t i = 0; i < tiles.size(); ++i)
      tiles[i].rows = reinterpret_cast<const int8_t*>(scratch) + i * kAmxRows * pixelBytes_;
    for (size_t y = 0; y < count; ++y) {
      for (size_t x = 0; x < g.outputWidth; ++x) {
        const size_t row = y * width_ + x;
        tiles[row / kAmxRows].outputs[row % kAmxRows] =
            outputOf(firstOutput + y * g.outputWidth + x);
      }
    }
    multiplyAmx(layer_.product, tiles, pixelBytes_, offsets_, firstPanel, lastPanel);
  }

  // Copies a line of an image, which may lie in its padding, with the padding at its sides.
  void copyLine(const int8_t* pixels, int64_t y, uint8_t* to) const {
    const Convolution& g = layer_.geometry;
    const auto fill = static_cast<uint8_t>(layer_.inputZero);
    if (y < 0 || y >= static_cast<int64_t>(g.inputHeight)) {
      std::memset(to, fill, width_ * pixelBytes_);
      return;
    }
    const size_t bytes = g.inputWidth * pixelBytes_;
    std::memset(to, fill, g.left * pixelBytes_);
    std::memcpy(to + g.left * pixelBytes_, pixels + static_cast<size_t>(y) * bytes, bytes);
    std::memset(to + g.left * pixelBytes_ + bytes, fill, g.right * pixelBytes_);
  }

  const size_t pixelBytes_;
  const size_t width_;  // of the copy
  const size_t reach_;  // lines below its own that an output reads
  std::vector<size_t> offsets_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeAmxLayerKernel(AmxLayer layer,
                                                   std::span<const uint8_t> packed) {
  HEARTH_ASSIGN(const uint8_t* const panels,
                packedBytes(packed, layer.product.panels() * layer.product.panelBytes()));
  layer.product.packed = panels;
  if (AmxImageKernel::takes(layer.geometry)) return std::make_unique<AmxImageKernel>(layer);
  return std::make_unique<AmxRowsKernel>(layer);
}

}  // namespace hearth::cpu
