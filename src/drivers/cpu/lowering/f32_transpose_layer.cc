// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/f32_transpose_layer.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "drivers/cpu/lowering/transpose_parts.h"
#include "drivers/cpu/microkernels/x86/f32_gemm.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// Tiles of outputs in one task, whose pointers and inputs stay in the first caches.
constexpr size_t kTiles = 10;
// Bytes of panels that stay in the second-level cache while all tiles of a task pass.
constexpr size_t kPanelBytesTogether = size_t{256} << 10;
// Fewer tasks than this for a thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 4;

constexpr size_t quotientUp(size_t a, size_t b) {
  return (a + b - 1) / b;
}

// A combination of parts.
struct Phase {
  TransposePart rows, columns;
  F32Gemm product;
};

// The phases in the order of their packed weights, which begin at `packed`.
std::vector<Phase> phasesOf(const F32TransposeLayer& layer, const float* packed) {
  const ops::TransposeConv2dParameters& g = layer.geometry;
  std::vector<Phase> phases;
  for (const TransposePart& rows : transposePartsOfRows(g))
    for (const TransposePart& columns : transposePartsOfColumns(g)) {
      F32Gemm product;
      product.packed = packed;
      product.taps = rows.taps * columns.taps;
      product.channels = g.input.channels;
      product.columns = product.outputStride = g.output.channels;
      product.lowest = layer.lowest;
      product.highest = layer.highest;
      phases.push_back({rows, columns, product});
      if (packed != nullptr) packed += product.panels() * product.panelSize();
    }
  return phases;
}

// Calls tap(row, column) for the taps of a phase, in XNNPACK's order: the first tap of the filter
// first, which is over the last row and column of the window.
template <typename Tap>
void forTaps(const Phase& phase, const Tap& tap) {
  for (size_t row = phase.rows.taps; row-- > 0;)
    for (size_t column = phase.columns.taps; column-- > 0;) tap(row, column);
}

class F32TransposeKernel final : public Kernel {
 public:
  explicit F32TransposeKernel(const F32TransposeLayer& layer)
      : layer_(layer),
        phases_(phasesOf(layer, layer.packed)),
        zeros_(layer.geometry.input.channels) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const size_t threads = threads::threadsOf(pool);
    tasks_.clear();
    for (const Phase& phase : phases_)
      addTasks(phase, threads == 1 ? 1 : quotientUp(threads * kTasksPerThread, phases_.size()));
    pointersPerThread_ = 0;
    for (const Task& task : tasks_)
      pointersPerThread_ =
          std::max(pointersPerThread_, (task.last - task.first) * task.phase->product.taps);
    pointers_.resize(threads * pointersPerThread_);
    return threads * resultsPerThread() * sizeof(float);
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    source_ = static_cast<const float*>(addresses[layer_.source]);
    destination_ = static_cast<float*>(addresses[layer_.destination]);
    workspace_ = static_cast<float*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    threads::forTasks(pool, tasks_.size(),
                      [&](size_t task, size_t thread) { compute(tasks_[task], thread); });
    return {};
  }

 private:
  // Outputs [first, last) of a phase, and panels of its weights.
  struct Task {
    const Phase* phase;
    size_t first, last, firstPanel, lastPanel;
  };

  size_t outputsOf(const Phase& phase) const {
    return layer_.geometry.input.batches * phase.rows.count * phase.columns.count;
  }
  size_t resultsPerThread() const { return tileRows_ * layer_.geometry.output.channels; }

  // Divides a phase into `wanted` tasks or more, where it is large enough.
  void addTasks(const Phase& phase, size_t wanted) {
    const ops::ImageShape& input = layer_.geometry.input;
    const size_t outputs = outputsOf(phase);
    const size_t panels = phase.product.panels();
    const size_t tiles = quotientUp(outputs, tileRows_);
    const size_t weights = panels * phase.product.panelSize();
    const size_t numbers = size_t{input.batches} * input.height * input.width * input.channels +
                           outputs * phase.product.columns;
    size_t chunks = quotientUp(tiles, kTiles);
    // Of large weights each thread reads some columns.
    if (weights <= numbers) chunks = std::max(chunks, std::min(tiles, wanted));
    const size_t blocks = std::min(panels, quotientUp(wanted, chunks));
    chunks = std::max(chunks, std::min(tiles, quotientUp(wanted, blocks)));
    for (size_t block = 0; block < blocks; ++block)
      for (size_t chunk = 0; chunk < chunks; ++chunk)
        tasks_.push_back({&phase, chunk * outputs / chunks, (chunk + 1) * outputs / chunks,
                          block * panels / blocks, (block + 1) * panels / blocks});
  }

  void compute(const Task& task, size_t thread) {
    const F32Gemm& product = task.phase->product;
    const float** const pointers = pointers_.data() + thread * pointersPerThread_;
    float* const results = workspace_ + thread * resultsPerThread();
    const size_t count = task.last - task.first;
    // Outputs are divided evenly, so that no tile has much fewer than the others.
    const size_t tiles = quotientUp(count, tileRows_);
    const auto tileStart = [&](size_t tile) {
      return tile * count / tiles;
    };
    for (size_t t = 0; t < tiles; ++t)
      findTaps(*task.phase, task.first + tileStart(t), tileStart(t + 1) - tileStart(t),
               pointers + tileStart(t) * product.taps);
    const size_t together =
        std::max<size_t>(1, kPanelBytesTogether / (product.panelSize() * sizeof(float)));
    for (size_t panel = task.firstPanel; panel < task.lastPanel; panel += together) {
      const size_t end = std::min(task.lastPanel, panel + together);
      const size_t column = panel * f32Tile().columns;
      const size_t columns = std::min(product.columns, end * f32Tile().columns) - column;
      for (size_t t = 0; t < tiles; ++t) {
        const size_t row = tileStart(t);
        const size_t rows = tileStart(t + 1) - row;
        multiplyF32(product, pointers + row * product.taps, rows, panel, end, results);
        store(*task.phase, task.first + row, rows, column, columns, results);
      }
    }
  }

  // Calls run(done, count, image, row, column) for outputs [first, first + count) of a phase, of
  // one row at a time.
  template <typename Run>
  void forRows(const Phase& phase, size_t first, size_t count, const Run& run) const {
    for (size_t done = 0, part = 0; done < count; done += part) {
      const size_t column = (first + done) % phase.columns.count;
      const size_t row = (first + done) / phase.columns.count;
      part = std::min(count - done, phase.columns.count - column);
      run(done, part, row / phase.rows.count, row % phase.rows.count, column);
    }
  }

  // Sets the pointers to the taps of a tile: by tap, within a tap by output.
  void findTaps(const Phase& phase, size_t first, size_t count, const float** at) const {
    const ops::ImageShape& input = layer_.geometry.input;
    const auto height = static_cast<int64_t>(input.height);
    const auto width = static_cast<int64_t>(input.width);
    forRows(phase, first, count,
            [&](size_t done, size_t outputs, size_t image, size_t row, size_t column) {
              const float** to = at + done;
              forTaps(phase, [&](size_t tapRow, size_t tapColumn) {
                const int64_t y = static_cast<int64_t>(row + tapRow) - phase.rows.before;
                int64_t x = static_cast<int64_t>(column + tapColumn) - phase.columns.before;
                const bool isInside = y >= 0 && y < height;
                const float* const line =
                    isInside ? source_ + (image * input.height + static_cast<size_t>(y)) *
                                             input.width * input.channels
                             : nullptr;
                for (size_t o = 0; o < outputs; ++o, ++x)
                  to[o] = isInside && x >= 0 && x < width
                              ? line + static_cast<size_t>(x) * input.channels
                              : zeros_.data();
                to += count;
              });
            });
  }

  // Copies columns of a tile's results to the outputs, which lie apart.
  void store(const Phase& phase, size_t first, size_t count, size_t column, size_t columns,
             const float* results) const {
    const ops::TransposeConv2dParameters& g = layer_.geometry;
    const size_t channels = g.output.channels;
    forRows(phase, first, count,
            [&](size_t done, size_t outputs, size_t image, size_t row, size_t x) {
              const size_t y = phase.rows.first + row * static_cast<size_t>(g.window.strideHeight);
              const auto stride = static_cast<size_t>(g.window.strideWidth);
              const size_t pixel =
                  (image * g.output.height + y) * g.output.width + phase.columns.first + x * stride;
              for (size_t o = 0; o < outputs; ++o)
                std::copy_n(results + (done + o) * channels + column, columns,
                            destination_ + (pixel + o * stride) * channels + column);
            });
  }

  const F32TransposeLayer layer_;
  const std::vector<Phase> phases_;
  const std::vector<float> zeros_;  // taps beyond the image point here
  const size_t tileRows_ = f32Tile().rows;
  std::vector<Task> tasks_;
  std::vector<const float*> pointers_;
  size_t pointersPerThread_ = 0;
  const float* source_ = nullptr;
  float* destination_ = nullptr;
  float* workspace_ = nullptr;
};

// What packing reads, and the layer.
struct Creation : LayerPacking {
  F32TransposeLayer layer;
  const uint8_t* filter = nullptr;
  ConvertedConstantRef convertedFilter;  // in place of `filter`
  const uint8_t* bias = nullptr;
};

Result<std::unique_ptr<Kernel>> makeKernel(const Creation& c) {
  F32TransposeLayer layer = c.layer;
  HEARTH_ASSIGN(const uint8_t* const packed,
                c.weights->pack(c.place, "TRANSPOSE_CONV_2D", c.packed.get(), layer.packedBytes(),
                                [&](uint8_t* bytes) {
                                  std::vector<uint8_t> converted;
                                  if (c.convertedFilter != nullptr)
                                    converted = c.convertedFilter->convert();
                                  const uint8_t* const filter =
                                      c.convertedFilter == nullptr ? c.filter : converted.data();
                                  packF32Transpose(layer, reinterpret_cast<const float*>(filter),
                                                   reinterpret_cast<const float*>(c.bias),
                                                   reinterpret_cast<float*>(bytes));
                                }));
  layer.packed = reinterpret_cast<const float*>(packed);
  return makeF32TransposeKernel(layer);
}

}  // namespace

size_t F32TransposeLayer::packedBytes() const {
  size_t bytes = 0;
  for (const Phase& phase : phasesOf(*this, nullptr))
    bytes += phase.product.panels() * phase.product.panelSize() * sizeof(float);
  return bytes;
}

void packF32Transpose(const F32TransposeLayer& layer, const float* weights, const float* bias,
                      float* packed) {
  const ops::TransposeConv2dParameters& g = layer.geometry;
  const auto filterHeight = static_cast<size_t>(g.window.filterHeight);
  const auto filterWidth = static_cast<size_t>(g.window.filterWidth);
  const size_t lanes = f32Tile().columns;
  std::fill_n(packed, layer.packedBytes() / sizeof(float), 0.0f);
  for (const Phase& phase : phasesOf(layer, nullptr)) {
    for (size_t column = 0; column < phase.product.columns; ++column) {
      float* at = packed + column / lanes * phase.product.panelSize() + column % lanes;
      if (bias != nullptr) *at = bias[column];
      forTaps(phase, [&](size_t row, size_t tapColumn) {
        const size_t y = phase.rows.lastTap - row * static_cast<size_t>(g.window.strideHeight);
        const size_t x =
            phase.columns.lastTap - tapColumn * static_cast<size_t>(g.window.strideWidth);
        const float* const tap =
            weights + ((column * filterHeight + y) * filterWidth + x) * phase.product.channels;
        for (size_t c = 0; c < phase.product.channels; ++c) {
          at += lanes;
          *at = tap[c];
        }
      });
    }
    packed += phase.product.panels() * phase.product.panelSize();
  }
}

std::unique_ptr<Kernel> makeF32TransposeKernel(const F32TransposeLayer& layer) {
  return std::make_unique<F32TransposeKernel>(layer);
}

Result<bool> addF32TransposeLayer(PlanBuilder* builder,
                                  const ops::TransposeConv2dParameters& geometry) {
  // With fewer, finding the taps takes as long as multiplying them, which XNNPACK does once.
  constexpr uint32_t kLeastChannels = 16;
  const graph::Operation& operation = *builder->context().operation;
  if (builder->operand(operation.inputs[0]).type != graph::OperandType::kTensorFloat32 ||
      geometry.input.channels < kLeastChannels || !cpuHasF32Gemm() ||
      !hasFewTransposeParts(geometry))
    return false;
  const uint32_t bias = builder->context().hasInput(2) ? operation.inputs[2] : UINT32_MAX;
  auto creation = std::make_shared<Creation>();
  Creation& c = *creation;
  c.layer.geometry = geometry;
  const ops::ActivationRange range = ops::activationRange(geometry.activation);
  c.layer.lowest = range.lowest;
  c.layer.highest = range.highest;
  c.place = WeightPlace::of(builder->currentOperation(), PackedLayout::kTranspose);
  c.filter = builder->constants().weightData(operation.inputs[1], c.place);
  c.convertedFilter = builder->constants().converted(operation.inputs[1]);
  if (bias != UINT32_MAX) {
    HEARTH_ASSIGN(c.bias, builder->constants().biasData(bias, c.place));
  }
  const uint32_t operands[] = {operation.inputs[0], operation.inputs[1], bias,
                               operation.outputs[0]};
  const ops::Window2d& w = geometry.window;
  const uint64_t parameters[] = {static_cast<uint64_t>(w.strideHeight),
                                 static_cast<uint64_t>(w.strideWidth),
                                 static_cast<uint64_t>(w.padding.top),
                                 static_cast<uint64_t>(w.padding.left),
                                 geometry.output.height,
                                 geometry.output.width,
                                 f32Tile().columns};
  c.packed = builder->packingSource(operands, parameters);
  c.weights = builder->weights();
  c.layer.source = builder->read(operation.inputs[0]);
  c.layer.destination = builder->write(operation.outputs[0]);
  Node& node = builder->add("own", {c.layer.source}, {c.layer.destination});
  builder->constants().releaseAfterPacking(&node, operation.inputs[1]);
  node.create = [creation] {
    return makeKernel(*creation);
  };
  return true;
}

}  // namespace hearth::cpu
