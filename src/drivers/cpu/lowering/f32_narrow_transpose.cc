// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/f32_narrow_transpose.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "drivers/cpu/lowering/narrow_lines.h"
#include "drivers/cpu/lowering/transpose_parts.h"
#include "drivers/cpu/microkernels/x86/f32_narrow_line.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

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

// The lines of all parts over the image: each output is one of every part.
NarrowLines::Shape shapeOf(const ops::TransposeConv2dParameters& g, const Extent& rows,
                           const Extent& columns) {
  const size_t taps =
      static_cast<size_t>(g.window.filterHeight) * static_cast<size_t>(g.window.filterWidth);
  const double pixels = static_cast<double>(rows.outputs) * static_cast<double>(columns.outputs);
  return {.images = g.input.batches,
          .lines = rows.outputs,
          .outputs = columns.outputs,
          .height = g.input.height,
          .width = g.input.width,
          .channels = g.input.channels,
          .top = rows.low,
          .left = columns.low,
          .rows = rows.reach + 1,
          .reach = columns.reach,
          .outputChannels = g.output.channels,
          .places = taps,
          .steps = pixels * g.input.batches * g.input.channels *
                   (static_cast<double>(taps) * g.output.channels + 1)};
}

class F32NarrowTransposeKernel final : public Kernel {
 public:
  explicit F32NarrowTransposeKernel(const F32NarrowTranspose& layer)
      : F32NarrowTransposeKernel(layer, transposePartsOfRows(layer.geometry),
                                 transposePartsOfColumns(layer.geometry)) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return lines_.divide(threads::threadsOf(pool));
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    source_ = static_cast<const float*>(addresses[layer_.source]);
    destination_ = static_cast<float*>(addresses[layer_.destination]);
    workspace_ = static_cast<float*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    lines_.run(pool, source_, workspace_, [&](NarrowLines::Task& task) { compute(task); });
    return {};
  }

 private:
  F32NarrowTransposeKernel(const F32NarrowTranspose& layer, const std::vector<TransposePart>& rows,
                           const std::vector<TransposePart>& columns)
      : layer_(layer),
        rows_(rows),
        columns_(columns),
        lines_(shapeOf(layer.geometry, rows_, columns_)) {
    noBias_.resize(layer_.geometry.output.channels);
    for (const TransposePart& row : rows)
      for (const TransposePart& column : columns) addPhase(row, column);
  }

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
  }

  // Computes the outputs of all parts.
  void compute(NarrowLines::Task& task) const {
    const ops::TransposeConv2dParameters& g = layer_.geometry;
    for (size_t line = task.begin; line < task.end; ++line)
      for (const Phase& phase : phases_) {
        if (line >= phase.rows.count || task.first >= phase.columns.count) continue;
        for (size_t i = 0; i < phase.places; ++i) {
          const Place& place = places_[phase.firstPlace + i];
          task.window[i] = {task.planesOf(line, place.row) + place.column, place.weights};
        }
        const size_t count = std::min(task.count, phase.columns.count - task.first);
        multiplyF32NarrowLine({.taps = phase.places,
                               .channels = g.input.channels,
                               .window = task.window,
                               .channelStep = lines_.planes().planeSize,
                               .columns = g.output.channels,
                               .columnStep = static_cast<size_t>(g.window.filterHeight) *
                                             static_cast<size_t>(g.window.filterWidth) *
                                             g.input.channels,
                               .bias = layer_.bias == nullptr ? noBias_.data() : layer_.bias,
                               .lowest = layer_.lowest,
                               .highest = layer_.highest,
                               .outputs = count,
                               .results = task.results,
                               .resultStep = lines_.resultStep()});
        store(phase, task, line, count);
      }
  }

  // Copies the results of a line to the outputs, which lie a stride apart.
  void store(const Phase& phase, const NarrowLines::Task& task, size_t line, size_t count) const {
    const ops::TransposeConv2dParameters& g = layer_.geometry;
    const size_t columns = g.output.channels;
    const auto stride = static_cast<size_t>(g.window.strideWidth);
    const size_t y = phase.rows.first + line * static_cast<size_t>(g.window.strideHeight);
    const size_t x = phase.columns.first + task.first * stride;
    float* const output =
        destination_ + ((task.image * g.output.height + y) * g.output.width + x) * columns;
    for (size_t column = 0; column < columns; ++column)
      for (size_t i = 0; i < count; ++i)
        output[i * stride * columns + column] = task.results[column * lines_.resultStep() + i];
  }

  const F32NarrowTranspose layer_;
  const Extent rows_, columns_;
  NarrowLines lines_;
  std::vector<float> noBias_;
  std::vector<Place> places_;
  std::vector<Phase> phases_;
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
  if (across.outputs < kF32NarrowOutputs ||
      shapeOf(g, Extent(rows), across).outputsThatFit() < NarrowLines::kLeastOutputs)
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
