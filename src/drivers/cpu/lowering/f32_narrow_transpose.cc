// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/f32_narrow_transpose.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "drivers/cpu/lowering/channel_planes.h"
#include "drivers/cpu/lowering/transpose_parts.h"
#include "drivers/cpu/microkernels/x86/f32_narrow_line.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// Numbers of the input that a task rearranges: they stay in the second-level cache.
constexpr size_t kMostNumbers = size_t{64} << 10;
// Outputs of a line of a part in one task; with fewer than the least, much of the input would be
// read again.
constexpr size_t kMostOutputs = 1024;
constexpr size_t kLeastOutputs = 64;
// Fewer tasks than this for a thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 4;

// What all parts along a dimension read: of their outputs number i, the inputs from i + low to
// i + low + reach.
struct Extent {
  size_t outputs = 0;  // of the largest part
  int64_t low = 0;
  size_t reach = 0;

  explicit Extent(std::span<const TransposePart> parts) {
    int64_t high = 0;
    bool isFirst = true;
    for (const TransposePart& part : parts) {
      outputs = std::max(outputs, part.count);
      if (part.taps == 0) continue;
      const int64_t last = static_cast<int64_t>(part.taps) - 1 - part.before;
      low = isFirst ? -part.before : std::min(low, -part.before);
      high = isFirst ? last : std::max(high, last);
      isFirst = false;
    }
    reach = static_cast<size_t>(high - low);
  }
};

// How many outputs of a line of a part a task may compute; 0 if even one does not fit.
size_t outputsThatFit(const ops::TransposeConv2dParameters& g, const Extent& rows,
                      const Extent& columns) {
  const size_t channels = g.input.channels;
  if (channels > kMostNumbers || rows.reach >= kMostNumbers) return 0;
  const size_t all = kMostNumbers / (channels * (rows.reach + 1));
  return all <= columns.reach ? 0 : (all - columns.reach) / kF32NarrowOutputs * kF32NarrowOutputs;
}

class F32NarrowTransposeKernel final : public Kernel {
 public:
  explicit F32NarrowTransposeKernel(const F32NarrowTranspose& layer)
      : layer_(layer),
        rowParts_(transposePartsOfRows(layer.geometry)),
        columnParts_(transposePartsOfColumns(layer.geometry)),
        rows_(rowParts_),
        columns_(columnParts_) {
    const ops::TransposeConv2dParameters& g = layer_.geometry;
    noBias_.resize(g.output.channels);
    const size_t most = std::min(outputsThatFit(g, rows_, columns_), kMostOutputs);
    const size_t chunks = (columns_.outputs + most - 1) / most;
    const size_t outputs = (columns_.outputs + chunks - 1) / chunks;
    outputsPerTask_ = (outputs + kF32NarrowOutputs - 1) / kF32NarrowOutputs * kF32NarrowOutputs;
    chunks_ = (columns_.outputs + outputsPerTask_ - 1) / outputsPerTask_;
    planes_ = {.height = g.input.height,
               .width = g.input.width,
               .channels = g.input.channels,
               .planeSize = outputsPerTask_ + columns_.reach};
    for (const TransposePart& row : rowParts_)
      for (const TransposePart& column : columnParts_) addPhase(row, column);
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const size_t threads = threads::threadsOf(pool);
    const size_t rowsThatFit = std::max(rows_.reach + 1, kMostNumbers / planes_.rowSize());
    const size_t mostLines = rowsThatFit - rows_.reach;
    blocks_ = (rows_.outputs + mostLines - 1) / mostLines;
    if (threads > 1 && isWorthDividing()) {
      const size_t others = layer_.geometry.input.batches * chunks_;
      const auto blocksFor = [&](size_t tasks) {
        return (tasks + others - 1) / others;
      };
      // Each block rearranges the rows above its first line again.
      const size_t most = std::max(rows_.outputs / (rows_.reach + 1), blocksFor(threads));
      blocks_ = std::max(blocks_, std::min(blocksFor(threads * kTasksPerThread), most));
      blocks_ = std::min(blocks_, rows_.outputs);
    }
    const size_t lines = (rows_.outputs + blocks_ - 1) / blocks_;
    rowsPerTask_ = lines + rows_.reach;
    numbersPerThread_ =
        rowsPerTask_ * planes_.rowSize() + layer_.geometry.output.channels * outputsPerTask_;
    isArranged_.resize(threads * rowsPerTask_);
    window_.resize(threads * mostPlaces_);
    return threads * numbersPerThread_ * sizeof(float);
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    source_ = static_cast<const float*>(addresses[layer_.source]);
    destination_ = static_cast<float*>(addresses[layer_.destination]);
    workspace_ = static_cast<float*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const size_t tasks = layer_.geometry.input.batches * blocks_ * chunks_;
    threads::forTasks(pool, tasks, [&](size_t task, size_t thread) {
      const size_t block = task / chunks_ % blocks_;
      compute(task / chunks_ / blocks_, block * rows_.outputs / blocks_,
              (block + 1) * rows_.outputs / blocks_, task % chunks_ * outputsPerTask_, thread);
    });
    return {};
  }

 private:
  // A place of the window of a phase, in the order of sums.
  struct Place {
    size_t row;     // of those that a line of outputs reads
    size_t column;  // number in a plane
    const float* weights;
  };

  // A combination of parts.
  struct Phase {
    TransposePart rows, columns;
    size_t firstPlace, places;
  };

  void addPhase(const TransposePart& rows, const TransposePart& columns) {
    const ops::TransposeConv2dParameters& g = layer_.geometry;
    const auto strideHeight = static_cast<size_t>(g.window.strideHeight);
    const auto strideWidth = static_cast<size_t>(g.window.strideWidth);
    const auto filterWidth = static_cast<size_t>(g.window.filterWidth);
    const size_t firstPlace = places_.size();
    for (size_t row = rows.taps; row-- > 0;)
      for (size_t column = columns.taps; column-- > 0;) {
        const size_t y = rows.lastTap - row * strideHeight;
        const size_t x = columns.lastTap - column * strideWidth;
        places_.push_back(
            {static_cast<size_t>(static_cast<int64_t>(row) - rows.before - rows_.low),
             static_cast<size_t>(static_cast<int64_t>(column) - columns.before - columns_.low),
             layer_.weights + (y * filterWidth + x) * g.input.channels});
      }
    phases_.push_back({rows, columns, firstPlace, places_.size() - firstPlace});
    mostPlaces_ = std::max(mostPlaces_, places_.size() - firstPlace);
  }

  // Whether it takes some tens of microseconds.
  bool isWorthDividing() const {
    constexpr double kManySteps = 1 << 18;
    const ops::TransposeConv2dParameters& g = layer_.geometry;
    const double pixels =
        static_cast<double>(rows_.outputs) * static_cast<double>(columns_.outputs);
    return static_cast<double>(g.input.batches) * pixels * g.input.channels *
               (static_cast<double>(places_.size()) * g.output.channels + 1) >=
           kManySteps;
  }

  // Computes the outputs of lines [begin, end) of all parts of an image, from `first` on.
  void compute(size_t image, size_t begin, size_t end, size_t first, size_t thread) {
    const ops::TransposeConv2dParameters& g = layer_.geometry;
    const size_t channels = g.input.channels;
    float* const rows = workspace_ + thread * numbersPerThread_;
    float* const results = rows + rowsPerTask_ * planes_.rowSize();
    const std::span<uint8_t> isArranged(isArranged_.data() + thread * rowsPerTask_, rowsPerTask_);
    F32NarrowTap* const window = window_.data() + thread * mostPlaces_;
    const float* const source = source_ + image * g.input.height * g.input.width * channels;
    const size_t widest = std::min(outputsPerTask_, columns_.outputs - first);
    std::ranges::fill(isArranged, 0);
    for (size_t line = begin; line < end; ++line)
      for (const Phase& phase : phases_) {
        if (line >= phase.rows.count || first >= phase.columns.count) continue;
        for (size_t i = 0; i < phase.places; ++i) {
          const Place& place = places_[phase.firstPlace + i];
          const size_t row = line - begin + place.row;
          float* const planes = rows + row * planes_.rowSize();
          if (!isArranged[row]) {
            isArranged[row] = 1;
            planes_.arrange(source, static_cast<int64_t>(begin + row) + rows_.low,
                            static_cast<int64_t>(first) + columns_.low, widest + columns_.reach,
                            planes);
          }
          window[i] = {planes + place.column, place.weights};
        }
        const size_t count = std::min(outputsPerTask_, phase.columns.count - first);
        multiplyF32NarrowLine({.taps = phase.places,
                               .channels = channels,
                               .window = window,
                               .channelStep = planes_.planeSize,
                               .columns = g.output.channels,
                               .columnStep = static_cast<size_t>(g.window.filterHeight) *
                                             static_cast<size_t>(g.window.filterWidth) * channels,
                               .bias = layer_.bias == nullptr ? noBias_.data() : layer_.bias,
                               .lowest = layer_.lowest,
                               .highest = layer_.highest,
                               .outputs = count,
                               .results = results,
                               .resultStep = outputsPerTask_});
        store(phase, image, line, first, count, results);
      }
  }

  // Copies the results of a line to the outputs, which lie a stride apart.
  void store(const Phase& phase, size_t image, size_t line, size_t first, size_t count,
             const float* results) const {
    const ops::TransposeConv2dParameters& g = layer_.geometry;
    const size_t columns = g.output.channels;
    const auto stride = static_cast<size_t>(g.window.strideWidth);
    const size_t y = phase.rows.first + line * static_cast<size_t>(g.window.strideHeight);
    const size_t x = phase.columns.first + first * stride;
    float* const output =
        destination_ + ((image * g.output.height + y) * g.output.width + x) * columns;
    for (size_t column = 0; column < columns; ++column)
      for (size_t i = 0; i < count; ++i)
        output[i * stride * columns + column] = results[column * outputsPerTask_ + i];
  }

  const F32NarrowTranspose layer_;
  const std::vector<TransposePart> rowParts_, columnParts_;
  const Extent rows_, columns_;
  std::vector<float> noBias_;
  std::vector<Place> places_;
  std::vector<Phase> phases_;
  size_t mostPlaces_ = 0;      // of a phase
  size_t outputsPerTask_ = 0;  // of a line; a multiple of kF32NarrowOutputs
  size_t chunks_ = 1;          // of a line
  size_t blocks_ = 1;          // of the lines of an image
  ChannelPlanes planes_;
  size_t rowsPerTask_ = 0;
  size_t numbersPerThread_ = 0;
  std::vector<uint8_t> isArranged_;   // by thread and row
  std::vector<F32NarrowTap> window_;  // by thread and place
  const float* source_ = nullptr;
  float* destination_ = nullptr;
  float* workspace_ = nullptr;
};

}  // namespace

bool hasF32NarrowTranspose(const ops::TransposeConv2dParameters& g) {
  const size_t lanes = f32NarrowLanes();
  const size_t columns = g.output.channels;
  if (!hasFewTransposeParts(g) || columns == 0 || columns > lanes / 2) return false;
  const std::vector<TransposePart> rows = transposePartsOfRows(g);
  const std::vector<TransposePart> lines = transposePartsOfColumns(g);
  const Extent across(lines);
  if (across.outputs < kF32NarrowOutputs || outputsThatFit(g, Extent(rows), across) < kLeastOutputs)
    return false;
  // What an input takes, in vectors that are multiplied: by a product over a panel, which finds the
  // places of windows and copies the results, too; and here, where the channels of the input and
  // the results are copied.
  constexpr double kCopyIn = 0.5, kCopyOut = 3;
  const double taps = static_cast<double>(g.window.filterHeight) * g.window.filterWidth;
  const double outputs = static_cast<double>(g.window.strideHeight) * g.window.strideWidth;
  const double product = taps * g.input.channels;
  const double copied = kCopyOut * outputs * static_cast<double>(columns);
  const double here = product * static_cast<double>(columns) / static_cast<double>(lanes) +
                      kCopyIn * g.input.channels + copied;
  return here < product + copied;
}

std::unique_ptr<Kernel> makeF32NarrowTransposeKernel(const F32NarrowTranspose& layer) {
  return std::make_unique<F32NarrowTransposeKernel>(layer);
}

Result<bool> addF32NarrowTranspose(PlanBuilder* builder,
                                   const ops::TransposeConv2dParameters& geometry) {
  const graph::Operation& operation = *builder->context().operation;
  if (builder->operand(operation.inputs[0]).type != graph::OperandType::kTensorFloat32 ||
      !hasF32NarrowTranspose(geometry))
    return false;
  F32NarrowTranspose layer;
  layer.geometry = geometry;
  HEARTH_ASSIGN(const uint8_t* const weights, builder->constants().rawData(operation.inputs[1]));
  layer.weights = reinterpret_cast<const float*>(weights);
  if (builder->context().hasInput(2)) {
    HEARTH_ASSIGN(const uint8_t* const bias, builder->constants().rawData(operation.inputs[2]));
    layer.bias = reinterpret_cast<const float*>(bias);
  }
  const ops::ActivationRange range = ops::activationRange(geometry.activation);
  layer.lowest = range.lowest;
  layer.highest = range.highest;
  layer.source = builder->read(operation.inputs[0]);
  layer.destination = builder->write(operation.outputs[0]);
  builder->add("own", {layer.source}, {layer.destination}).create =
      [layer]() -> Result<std::unique_ptr<Kernel>> {
    return makeF32NarrowTransposeKernel(layer);
  };
  return true;
}

}  // namespace hearth::cpu
