// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/f32_layer.h"

#include <algorithm>
#include <vector>

#include "drivers/cpu/kernels/packed_bytes.h"
#include "drivers/cpu/microkernels/portable/im2col.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// Tiles of rows in one task where all panels stay in the second-level cache; fewer where each takes
// much scratch memory: a hostile model may have windows of any size.
constexpr size_t kTiles = 10;
constexpr size_t kScratchPerTask = size_t{512} << 10;
// Otherwise all panels are read for each task, so it has as many rows as read so many bytes.
constexpr size_t kInputBytesPerTask = size_t{512} << 10;
// Bytes of panels that stay in the second-level cache while all rows of a task pass.
constexpr size_t kPanelBytesTogether = size_t{256} << 10;
// With fewer input channels the inner loop over the channels of one tap would be short, and finding
// the places of windows would take a tenth of the time and more, so a whole row of the window is
// one tap.
constexpr size_t kFewChannels = 32;
// Fewer tasks than this for a thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 4;
// With fewer, each weight would be multiplied by too few rows to hide the time it takes to read it.
constexpr size_t kRowsPerThread = 8;

// How the inputs of rows are found.
enum class Way {
  kDirect,  // they are pixels
  kRows,    // a row of a window, in place or gathered, is one tap
  kTaps,    // each place of a window is one
};
Way wayOf(const Convolution& g) {
  if (g.isOverPixels()) return Way::kDirect;
  return g.groups == 1 && g.groupInputChannels < kFewChannels ? Way::kRows : Way::kTaps;
}

class F32LayerKernel final : public Kernel {
 public:
  explicit F32LayerKernel(const F32Layer& layer)
      : layer_(layer),
        product_(layer.product),
        windows_(layer.geometry, sizeof(float), 0),
        pixelSize_(layer.geometry.groups * layer.geometry.groupInputChannels),
        rows_(layer.geometry.batch * layer.geometry.outputHeight * layer.geometry.outputWidth),
        way_(wayOf(layer.geometry)) {
    const Convolution& g = layer_.geometry;
    if (way_ == Way::kRows) {
      product_.channels *= g.kernelWidth;
      product_.taps = g.kernelHeight;
    }
    if (way_ != Way::kDirect) zeros_.resize(std::max(product_.channels, pixelSize_));
    const size_t scratch =
        way_ == Way::kRows ? windows_.windowBytes() : product_.taps * sizeof(float*);
    size_t tiles = kTiles;
    if (panelsTogether() < product_.panels()) {
      // Of any model: the product of both strides and the channels may not fit.
      const size_t pixels = std::min(size_t{g.strideHeight} * g.strideWidth, kInputBytesPerTask);
      const size_t inputBytes = pixels * pixelSize_ * sizeof(float);
      tiles = std::max(tiles, kInputBytesPerTask / inputBytes / tileRows_);
    }
    rowsPerTask_ = tileRows_ * std::clamp<size_t>(kScratchPerTask / scratch / tileRows_, 1, tiles);
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const size_t threads = threads::threadsOf(pool);
    const Convolution& g = layer_.geometry;
    const size_t tasks = threads == 1 ? 1 : threads * kTasksPerThread;
    const size_t weights = g.groups * product_.panels() * product_.panelSize();
    const size_t numbers =
        g.batch * g.inputHeight * g.inputWidth * pixelSize_ + rows_ * g.groups * product_.columns;
    // Divides the work by rows where it can: each thread reads all weights, but mostly writes the
    // rows that it reads in the next layer. To read rows from another processor's cache takes much
    // longer than to read weights, which are fetched ahead, from a shared one.
    const bool hasManyRows = threads > 1 && rows_ >= threads * kRowsPerThread;
    const bool isByRows = weights <= numbers || hasManyRows;
    if (weights > numbers && hasManyRows) {
      // Each task reads all weights, so there is one for each thread.
      rowsPerTask_ = std::min(rowsPerTask_, (rows_ + threads - 1) / threads);
    } else if (isByRows) {
      const size_t tiles = std::max<size_t>(1, rows_ / (tasks * tileRows_));
      rowsPerTask_ = std::min(rowsPerTask_, tiles * tileRows_);
      // Whole lines have the fewest tiles that are not full.
      if (way_ == Way::kRows && rowsPerTask_ > g.outputWidth)
        rowsPerTask_ -= rowsPerTask_ % g.outputWidth;
      // Of few rows each thread gets as many.
      if (way_ != Way::kRows && threads > 1 && rows_ < tasks * tileRows_) {
        const size_t chunks = (rows_ + rowsPerTask_ - 1) / rowsPerTask_;
        const size_t even = (chunks + threads - 1) / threads * threads;
        rowsPerTask_ = std::max((rows_ + even - 1) / even, tileRows_ / 2);
      }
    }
    chunks_ = (rows_ + rowsPerTask_ - 1) / rowsPerTask_;
    // Divides it by columns, too: each thread reads the weights of some columns.
    if (!isByRows) blocks_ = std::min(product_.panels(), (tasks + chunks_ - 1) / chunks_);
    const size_t taskRows = std::min(rows_, rowsPerTask_);
    pointersPerThread_ = taskRows * product_.taps;
    if (isEven()) {
      // Those of one row, and scratch of the product.
      pointersPerThread_ = (1 + tileRows_) * product_.taps;
      gatheredPerThread_ = way_ == Way::kRows ? lineSize() : 0;
      gathered_.resize(threads * gatheredPerThread_);
    } else if (way_ == Way::kRows) {
      gatheredPerThread_ = taskRows * product_.taps * product_.channels;
      gathered_.resize(threads * gatheredPerThread_);
    }
    pointers_.resize(threads * pointersPerThread_);
    return 0;
  }

  Status setup(std::span<void* const> addresses, void*) override {
    source_ = static_cast<const float*>(addresses[layer_.source]);
    destination_ = static_cast<float*>(addresses[layer_.destination]) + layer_.outputOffset;
    if (layer_.addend)
      addend_ = static_cast<const float*>(addresses[*layer_.addend]) + layer_.outputOffset;
    if (layer_.slopes)
      product_.slopes = static_cast<const float*>(addresses[*layer_.slopes]) + layer_.outputOffset;
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const size_t panels = product_.panels();
    const auto task = [&](size_t index, size_t thread) {
      const size_t block = index / chunks_;
      const size_t first = index % chunks_ * rowsPerTask_;
      const size_t count = std::min(rowsPerTask_, rows_ - first);
      if (isEven())
        computeEven(first, count, thread);
      else
        compute(first, count, block * panels / blocks_, (block + 1) * panels / blocks_, thread);
    };
    threads::forTasks(pool, chunks_ * blocks_, task);
    return {};
  }

 private:
  // A pixel of the output.
  struct Place {
    size_t image, y, x;
  };

  Place placeOf(size_t row) const {
    const Convolution& g = layer_.geometry;
    const size_t line = row / g.outputWidth;
    return {line / g.outputHeight, line % g.outputHeight, row % g.outputWidth};
  }

  // Whether neighbouring rows are multiplied by all panels at once, without a table of pointers.
  bool isEven() const {
    const Convolution& g = layer_.geometry;
    if (g.groups != 1 || blocks_ != 1 || product_.panels() > panelsTogether()) return false;
    if (way_ != Way::kRows) return way_ == Way::kDirect;
    return g.dilationWidth == 1 &&
           lineWidth() <= kScratchPerTask / sizeof(float) / g.kernelHeight / pixelSize_;
  }

  // Pixels of the input that a line of the output reads in each row, padding included.
  size_t lineWidth() const {
    const Convolution& g = layer_.geometry;
    return (g.outputWidth - 1) * g.strideWidth + g.kernelWidth;
  }
  size_t lineSize() const { return lineWidth() * layer_.geometry.kernelHeight * pixelSize_; }

  void computeEven(size_t first, size_t count, size_t thread) {
    const Convolution& g = layer_.geometry;
    const float** const pointers = pointers_.data() + thread * pointersPerThread_;
    const size_t step = g.strideWidth * pixelSize_;
    for (size_t row = first, run = 0; row < first + count; row += run) {
      run = first + count - row;
      if (way_ == Way::kDirect) {
        *pointers = source_ + row * pixelSize_;
      } else {
        const Place place = placeOf(row);
        run = std::min(run, g.outputWidth - place.x);
        findLine(place, run, pointers, gathered_.data() + thread * gatheredPerThread_);
      }
      const size_t offset = row * product_.outputStride;
      multiplyEvenF32(product_, {pointers, step, run}, pointers + product_.taps,
                      destination_ + offset, addend_ == nullptr ? nullptr : addend_ + offset);
    }
  }

  // Sets the pointers to the taps, which are rows of the window, of the first of `count` outputs of
  // a line. Rows of the input are copied to `padded` where they need padding.
  void findLine(const Place& place, size_t count, const float** taps, float* padded) const {
    const Convolution& g = layer_.geometry;
    const size_t pixels = (count - 1) * g.strideWidth + g.kernelWidth;
    const int64_t left = firstX(place);
    const int64_t right = left + static_cast<int64_t>(pixels);
    // What of that lies inside the input; a window may lie in the padding alone.
    const int64_t begin = std::clamp<int64_t>(0, left, right);
    const int64_t end = std::clamp(static_cast<int64_t>(g.inputWidth), begin, right);
    const auto top = static_cast<int64_t>(place.y * g.strideHeight) - g.top;
    const float* const image = source_ + place.image * g.inputHeight * g.inputWidth * pixelSize_;
    for (uint32_t ky = 0; ky < g.kernelHeight; ++ky, padded += pixels * pixelSize_) {
      const int64_t y = top + int64_t{ky} * g.dilationHeight;
      taps[ky] = padded;
      if (y < 0 || y >= static_cast<int64_t>(g.inputHeight) || begin == end) {
        std::fill_n(padded, pixels * pixelSize_, 0.0f);
        continue;
      }
      const float* const row = image + static_cast<size_t>(y) * g.inputWidth * pixelSize_;
      const float* const inside = row + static_cast<size_t>(begin) * pixelSize_;
      if (begin == left && end == right) {
        taps[ky] = inside;
        continue;
      }
      float* at = std::fill_n(padded, static_cast<size_t>(begin - left) * pixelSize_, 0.0f);
      at = std::copy_n(inside, static_cast<size_t>(end - begin) * pixelSize_, at);
      std::fill_n(at, static_cast<size_t>(right - end) * pixelSize_, 0.0f);
    }
  }

  void compute(size_t first, size_t count, size_t firstPanel, size_t lastPanel, size_t thread) {
    const Convolution& g = layer_.geometry;
    const float** const pointers = pointers_.data() + thread * pointersPerThread_;
    float* const gathered = gathered_.data() + thread * gatheredPerThread_;
    const size_t windowSize = product_.taps * product_.channels;
    Place place = placeOf(first);
    // Rows are divided evenly, so that no tile has much fewer than the others.
    const size_t tiles = (count + tileRows_ - 1) / tileRows_;
    const auto tileStart = [&](size_t tile) {
      return tile * count / tiles;
    };
    // Pointers are ordered by tile, within a tile by tap, within a tap by row.
    for (size_t t = 0; t < tiles; ++t) {
      const size_t row = tileStart(t);
      const size_t tile = tileStart(t + 1) - row;
      const float** const at = pointers + row * product_.taps;
      for (size_t r = 0, run = 0; r < tile; r += run) {
        run = std::min(tile - r, g.outputWidth - place.x);
        if (way_ == Way::kRows) run = std::min(run, rowsInside(place));
        if (way_ == Way::kDirect) {
          for (size_t i = 0; i < run; ++i) at[r + i] = source_ + (first + row + r + i) * pixelSize_;
        } else if (run != 0) {
          findTaps(place, run, at + r, tile);
        } else {
          run = 1;
          gatherRows(first + row + r, gathered + (row + r) * windowSize, at + r, tile);
        }
        place.x += run;
        if (place.x < g.outputWidth) continue;
        place.x = 0;
        if (++place.y < g.outputHeight) continue;
        place.y = 0;
        ++place.image;
      }
    }
    const size_t groupSize = product_.panels() * product_.panelSize();
    F32Gemm product = product_;
    for (size_t group = 0; group < g.groups; ++group) {
      if (group != 0) {
        product.packed += groupSize;
        if (product.slopes != nullptr) product.slopes += product.columns;
        // Those to the padding stay within zeros_.
        for (size_t i = 0; i < count * product_.taps; ++i) pointers[i] += product_.channels;
      }
      multiply(product, pointers, first, count, tiles, firstPanel, lastPanel,
               group * product_.columns);
    }
  }

  // Multiplies rows, divided into so many tiles, by panels of a group whose columns begin at
  // `column` of the output.
  void multiply(const F32Gemm& product, const float* const* pointers, size_t first, size_t count,
                size_t tiles, size_t firstPanel, size_t lastPanel, size_t column) const {
    const auto tileStart = [&](size_t tile) {
      return tile * count / tiles;
    };
    const auto panelAt = [&](size_t panel) {
      return reinterpret_cast<const char*>(product.packed) + panel * panelBytes();
    };
    // While one block of panels is multiplied, each tile of rows fetches its part of the next
    // block. Without that, the first tile of each block waits for memory. For a single row all
    // panels are one block, since the product hides latency by multiplying several at a time.
    const size_t together = count == 1 ? lastPanel - firstPanel : panelsTogether();
    for (size_t panel = firstPanel; panel < lastPanel; panel += together) {
      const size_t end = std::min(lastPanel, panel + together);
      const size_t next = std::min(lastPanel, end + together);
      for (size_t t = 0; t < tiles; ++t) {
        const size_t row = tileStart(t);
        const size_t tile = tileStart(t + 1) - row;
        const size_t offset = (first + row) * product.outputStride + column;
        F32Ahead ahead;
        if (next > end)
          ahead = partAhead(panelAt(end), (next - end) * panelBytes(), t, tiles, end - panel);
        multiplyF32(product, pointers + row * product.taps, tile, panel, end, destination_ + offset,
                    addend_ == nullptr ? nullptr : addend_ + offset, ahead);
      }
    }
  }

  size_t panelBytes() const { return product_.panelSize() * sizeof(float); }
  size_t panelsTogether() const { return std::max<size_t>(1, kPanelBytesTogether / panelBytes()); }

  // Fetches `bytes` from `first` on while `panels` panels are multiplied, or some of them where
  // that would leave out cache lines: the part of one of `tiles` tiles.
  F32Ahead partAhead(const void* first, size_t bytes, size_t tile, size_t tiles,
                     size_t panels) const {
    constexpr size_t kLine = 64;
    const size_t fetches = panels * product_.fetchesPerPanel();
    if (fetches == 0) return {};
    const size_t step = std::min(kLine, bytes / (fetches * tiles) + 1);
    return {static_cast<const char*>(first) + tile * fetches * step, step};
  }

  int64_t firstX(const Place& place) const {
    return static_cast<int64_t>(place.x * layer_.geometry.strideWidth) - layer_.geometry.left;
  }

  // How many outputs of a line, from `place` on, have windows whose rows lie contiguously inside
  // the rows of the input.
  size_t rowsInside(const Place& place) const {
    const Convolution& g = layer_.geometry;
    const int64_t left = firstX(place);
    const int64_t room = static_cast<int64_t>(g.inputWidth) - g.kernelWidth - left;
    if (g.dilationWidth != 1 || left < 0 || room < 0) return 0;
    return static_cast<size_t>(room) / g.strideWidth + 1;
  }

  // Copies the window of an output to `window` and sets the pointers to its taps, `step` apart.
  void gatherRows(size_t row, float* window, const float** at, size_t step) const {
    windows_.gather(reinterpret_cast<const uint8_t*>(source_), row, row + 1,
                    reinterpret_cast<uint8_t*>(window));
    for (size_t tap = 0; tap < product_.taps; ++tap)
      at[tap * step] = window + tap * product_.channels;
  }

  // Sets the pointers to the taps of `count` outputs of a line, in place in the input. A tap is one
  // place of the window, or a row of it that lies inside the input.
  void findTaps(const Place& place, size_t count, const float** at, size_t step) const {
    const Convolution& g = layer_.geometry;
    const float* const image = source_ + place.image * g.inputHeight * g.inputWidth * pixelSize_;
    const auto top = static_cast<int64_t>(place.y * g.strideHeight) - g.top;
    const auto width = static_cast<int64_t>(g.inputWidth);
    const auto pixel = static_cast<int64_t>(pixelSize_);
    const uint32_t tapsOfRow = way_ == Way::kRows ? 1 : g.kernelWidth;
    for (uint32_t ky = 0; ky < g.kernelHeight; ++ky) {
      const int64_t y = top + int64_t{ky} * g.dilationHeight;
      const bool isInside = y >= 0 && y < static_cast<int64_t>(g.inputHeight);
      const float* const row = isInside ? image + y * width * pixel : nullptr;
      for (uint32_t kx = 0; kx < tapsOfRow; ++kx, at += step) {
        int64_t x = firstX(place) + int64_t{kx} * g.dilationWidth;
        const int64_t last = x + static_cast<int64_t>((count - 1) * g.strideWidth);
        if (isInside && x >= 0 && last < width) {
          // Most are so, and take a fraction of the time.
          const float* const from = row + x * pixel;
          for (size_t i = 0; i < count; ++i) at[i] = from + i * g.strideWidth * pixelSize_;
          continue;
        }
        for (size_t i = 0; i < count; ++i, x += g.strideWidth)
          at[i] = isInside && x >= 0 && x < width ? row + x * pixel : zeros_.data();
      }
    }
  }

  const F32Layer layer_;
  F32Gemm product_;
  const Im2col windows_;
  const size_t pixelSize_;  // channels of all groups
  const size_t rows_;
  const Way way_;
  const size_t tileRows_ = f32Tile().rows;
  size_t rowsPerTask_ = 0;
  size_t chunks_ = 1;         // of rows
  size_t blocks_ = 1;         // of panels
  std::vector<float> zeros_;  // taps in the padding point here
  std::vector<const float*> pointers_;
  size_t pointersPerThread_ = 0;
  std::vector<float> gathered_;
  size_t gatheredPerThread_ = 0;
  const float* source_ = nullptr;
  float* destination_ = nullptr;
  const float* addend_ = nullptr;
};

}  // namespace

bool isF32Layer(const Convolution& geometry) {
  // XNNPACK packs one channel to one channel as a depthwise convolution. Groups of one input
  // channel would make short sums.
  const bool isOneToOne = geometry.groupInputChannels == 1 && geometry.groupOutputChannels == 1;
  const bool isShort = geometry.groups != 1 && geometry.groupInputChannels == 1;
  return !geometry.isDepthwise && !isOneToOne && !isShort;
}

bool isFasterOnXnnpack(const Convolution& geometry) {
  constexpr size_t kFewSteps = 64;
  const size_t steps =
      size_t{geometry.kernelHeight} * geometry.kernelWidth * geometry.groupInputChannels;
  const bool isEven = geometry.groups == 1 && wayOf(geometry) != Way::kTaps;
  return f32Tile().columns > F32Tile().columns && steps < kFewSteps && !isEven;
}

Result<std::unique_ptr<Kernel>> makeF32LayerKernel(F32Layer layer,
                                                   std::span<const uint8_t> packed) {
  HEARTH_ASSIGN(const uint8_t* const panels,
                packedBytes(packed, layer.geometry.groups * layer.product.panels() *
                                        layer.product.panelSize() * sizeof(float)));
  layer.product.packed = reinterpret_cast<const float*>(panels);
  return std::make_unique<F32LayerKernel>(layer);
}

}  // namespace hearth::cpu
