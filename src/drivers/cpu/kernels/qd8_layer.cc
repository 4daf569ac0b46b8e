// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/qd8_layer.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/panel_blocks.h"
#include "drivers/cpu/microkernels/portable/im2col.h"
#include "drivers/cpu/microkernels/x86/avx512/qs8_gemm.h"
#include "threads/parallel_ranges.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// Rows and panels of one task: together they stay in the second-level cache.
constexpr size_t kRowBytesPerTask = size_t{1} << 20;
constexpr size_t kPanelBytesPerTask = size_t{768} << 10;
// Rows that a task gathers from an image and multiplies while they are in that cache.
constexpr size_t kGatheredBytes = size_t{128} << 10;
// Limits the scratch memory: prepared rows are longer than their source, and there may be very many
// short ones.
constexpr size_t kRowBytesPerPass = size_t{32} << 20;
// Fewer tasks than this for a thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 16;
constexpr size_t kLine = 64;

// How each product prepares and multiplies rows.
struct HybridRows {
  using Product = Qd8Gemm;
  static constexpr size_t kTile = kQd8Rows;
  static size_t bytes(const Product& product) { return qd8RowBytes(product.inputs); }
  static constexpr auto prepare = [](const Product& product, const int8_t* row, uint8_t* to) {
    prepareQd8Row(row, product.inputs, to);
  };
  static constexpr auto multiply = multiplyQd8;
};

struct Int4Rows {
  using Product = Qb4Gemm;
  static constexpr size_t kTile = kInt4Rows;
  static size_t bytes(const Product& product) { return int4RowBytes(product); }
  static constexpr auto prepare = prepareInt4Row;
  static constexpr auto multiply = multiplyInt4;
};

struct Avx2Rows {
  struct Product : Avx2HybridGemm {
    explicit Product(const Avx2HybridGemm& product)
        : Avx2HybridGemm(product), inputs(product.weights.inputs()) {}
    size_t panelBytes() const { return kAvx2Columns * inputs; }
    size_t inputs;
  };
  static constexpr size_t kTile = 12;
  static size_t bytes(const Product& product) {
    return avx2RowBytes(product.weights.form(), product.inputs);
  }
  static constexpr auto prepare = [](const Product& product, const int8_t* row, uint8_t* to) {
    prepareAvx2Rows(product.weights.form(), reinterpret_cast<const uint8_t*>(row), product.inputs,
                    1, product.inputs, 0x80, to);
  };
  static constexpr auto multiply = multiplyAvx2Hybrid;
};

template <typename Rows>
class Qd8LayerKernel final : public Kernel {
 public:
  using Product = Rows::Product;

  Qd8LayerKernel(const Qd8Layer& layer, const Product& product)
      : layer_(layer),
        product_(product),
        rowBytes_(Rows::bytes(product)),
        rowsPerPass_(std::min(
            layer.rows,
            isGatheredByTask()
                ? std::max(kGatheredBytes / rowBytes_ / Rows::kTile, size_t{1}) * Rows::kTile
                : std::max(kRowBytesPerPass / rowBytes_, Rows::kTile))) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    passes_ = isGatheredByTask() ? threads::threadsOf(pool) : 1;
    isCleared_.resize(passes_);
    size_t bytes = passes_ * rowsPerPass_ * rowBytes_;
    if (layer_.windows) bytes += parametersBytes() + imageBytes();
    return bytes + kAvx2ReadSlack;
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    numbers_ = static_cast<const int8_t*>(addresses[layer_.source.numbers]);
    parameters_ =
        static_cast<const struct xnn_quantization_params*>(addresses[layer_.source.parameters]);
    destination_ = static_cast<float*>(addresses[layer_.destination]) + layer_.outputOffset;
    prepared_ = static_cast<uint8_t*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    if (layer_.windows) {
      for (size_t image = 0; image < layer_.windows->batch; ++image) computeImage(pool, image);
      return {};
    }
    for (size_t row = 0; row < layer_.rows; row += rowsPerPass_) {
      const size_t rows = std::min(rowsPerPass_, layer_.rows - row);
      const int8_t* const numbers = numbers_ + row * product_.inputs;
      threads::forRanges(
          pool, rows, threads::grainOf(product_.inputs), [&](uint64_t begin, uint64_t end) {
            for (uint64_t i = begin; i < end; ++i)
              Rows::prepare(product_, numbers + i * product_.inputs, prepared_ + i * rowBytes_);
          });
      multiplyRows(pool, parameters_ + row, rows, destination_ + row * product_.outputStride);
    }
    return {};
  }

 private:
  // Whether each task of a convolution gathers its own rows: all panels stay in the cache
  // meanwhile.
  bool isGatheredByTask() const {
    return layer_.windows && product_.panels() * product_.panelBytes() <= kPanelBytesPerTask;
  }

  // A convolution has behind its prepared rows equal parameters for each of them, and the image in
  // unsigned bytes.
  size_t parametersBytes() const {
    return (rowsPerPass_ * sizeof(struct xnn_quantization_params) + kLine - 1) / kLine * kLine;
  }
  size_t imageBytes() const {
    const Convolution& g = *layer_.windows;
    return g.inputHeight * g.inputWidth * g.groupInputChannels;
  }

  void computeImage(threads::ThreadPool* pool, size_t index) {
    const size_t bytes = imageBytes();
    auto* const parameters = reinterpret_cast<struct xnn_quantization_params*>(
        prepared_ + passes_ * rowsPerPass_ * rowBytes_);
    auto* const image = reinterpret_cast<uint8_t*>(parameters) + parametersBytes();
    const int8_t* const numbers = numbers_ + index * bytes;
    threads::forRanges(pool, bytes, threads::kBytesPerTask, [&](uint64_t begin, uint64_t end) {
      makeUnsigned(numbers + begin, end - begin, image + begin);
    });
    std::fill_n(parameters, rowsPerPass_, parameters_[index]);
    Convolution one = *layer_.windows;
    one.batch = 1;
    // The unsigned byte that stands for zero.
    const auto fill = static_cast<uint8_t>(parameters_[index].zero_point + 128);
    const Im2col windows(one, 1, fill);
    float* const output = destination_ + index * layer_.rows * product_.outputStride;
    if (isGatheredByTask()) {
      const size_t tasks = (layer_.rows + rowsPerPass_ - 1) / rowsPerPass_;
      // The bytes behind the windows stay what they are from task to task.
      std::ranges::fill(isCleared_, uint8_t{0});
      threads::forTasks(pool, tasks, [&](size_t task, size_t thread) {
        uint8_t* const rows = prepared_ + thread * rowsPerPass_ * rowBytes_;
        const size_t first = task * rowsPerPass_;
        const size_t count = std::min(rowsPerPass_, layer_.rows - first);
        if (std::exchange(isCleared_[thread], uint8_t{1}) == 0) clearEnds(rowsPerPass_, rows);
        windows.gather(image, first, first + count, rows, rowBytes_);
        Rows::multiply(product_, rows, parameters, count, 0, product_.panels(),
                       output + first * product_.outputStride);
      });
      return;
    }
    for (size_t row = 0; row < layer_.rows; row += rowsPerPass_) {
      const size_t rows = std::min(rowsPerPass_, layer_.rows - row);
      threads::forRanges(
          pool, rows, threads::grainOf(product_.inputs), [&](uint64_t begin, uint64_t end) {
            clearEnds(end - begin, prepared_ + begin * rowBytes_);
            windows.gather(image, row + begin, row + end, prepared_ + begin * rowBytes_, rowBytes_);
          });
      multiplyRows(pool, parameters, rows, output + row * product_.outputStride);
    }
  }

  // Clears what lies behind the numbers of prepared rows.
  void clearEnds(size_t count, uint8_t* rows) const {
    for (size_t i = 0; i < count; ++i)
      std::memset(rows + i * rowBytes_ + product_.inputs, 0, rowBytes_ - product_.inputs);
  }

  // Multiplies the prepared rows; `output` is where the first row's results begin.
  void multiplyRows(threads::ThreadPool* pool, const struct xnn_quantization_params* parameters,
                    size_t rows, float* output) const {
    const Product& product = product_;
    const size_t most = std::max(kRowBytesPerTask / rowBytes_, Rows::kTile);
    const size_t chunks = (rows + most - 1) / most;
    const size_t threads = threads::threadsOf(pool);
    const size_t panels = product.panels();
    // Panels have to fit into the cache only if several chunks of rows read them.
    const size_t cached = chunks > 1 ? panels * product.panelBytes() / kPanelBytesPerTask : 1;
    const size_t blocks = panelBlocks(panels, cached, chunks, threads, kTasksPerThread);
    const auto task = [&](size_t index, size_t) {
      const size_t block = index / chunks;
      const size_t begin = index % chunks * rows / chunks;
      const size_t end = (index % chunks + 1) * rows / chunks;
      Rows::multiply(product, prepared_ + begin * rowBytes_, parameters + begin, end - begin,
                     block * panels / blocks, (block + 1) * panels / blocks,
                     output + begin * product.outputStride);
    };
    threads::forTasks(pool, chunks * blocks, task);
  }

  const Qd8Layer layer_;
  const Product product_;
  const size_t rowBytes_;
  const size_t rowsPerPass_;
  size_t passes_ = 1;  // that are prepared at a time
  const int8_t* numbers_ = nullptr;
  const struct xnn_quantization_params* parameters_ = nullptr;
  float* destination_ = nullptr;
  uint8_t* prepared_ = nullptr;
  std::vector<uint8_t> isCleared_;  // by thread: whether clearEnds() was called for its rows
};

}  // namespace

std::unique_ptr<Kernel> makeQd8LayerKernel(const Qd8Layer& layer, const Qd8Gemm& product) {
  return std::make_unique<Qd8LayerKernel<HybridRows>>(layer, product);
}

std::unique_ptr<Kernel> makeQd8LayerKernel(const Qd8Layer& layer, const Avx2HybridGemm& product) {
  return std::make_unique<Qd8LayerKernel<Avx2Rows>>(layer, Avx2Rows::Product(product));
}

std::unique_ptr<Kernel> makeQd8LayerKernel(const Qd8Layer& layer, const Qb4Gemm& product) {
  return std::make_unique<Qd8LayerKernel<Int4Rows>>(layer, product);
}

}  // namespace hearth::cpu
