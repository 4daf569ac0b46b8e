// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/f32_narrow_convolution.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "drivers/cpu/lowering/narrow_lines.h"
#include "drivers/cpu/microkernels/x86/f32_narrow_line.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// The lines of a convolution over its image.
NarrowLines::Shape shapeOf(const Convolution& g) {
  const size_t lastColumn = size_t{g.kernelWidth - 1} * g.dilationWidth;
  const size_t places = size_t{g.kernelHeight} * g.kernelWidth;
  return {.images = g.batch,
          .lines = g.outputHeight,
          .outputs = g.outputWidth,
          .height = g.inputHeight,
          .width = g.inputWidth,
          .channels = g.groupInputChannels,
          .top = -int64_t{g.top},
          .left = -int64_t{g.left},
          .rows = size_t{g.kernelHeight - 1} * g.dilationHeight + 1,
          .rowStep = g.strideHeight,
          .columnStep = g.strideWidth,
          .phases = std::min<size_t>(g.strideWidth, lastColumn + 1),
          .reach = lastColumn / g.strideWidth,
          .outputChannels = g.groupOutputChannels,
          .places = places,
          .steps = static_cast<double>(g.batch * g.outputHeight * g.outputWidth) *
                   static_cast<double>(places * g.groupInputChannels * g.groupOutputChannels)};
}

class F32NarrowKernel final : public Kernel {
 public:
  explicit F32NarrowKernel(const F32NarrowConvolution& layer)
      : layer_(layer), lines_(shapeOf(layer.geometry)) {
    noBias_.resize(layer_.geometry.groupOutputChannels);
    findPlaces();
  }

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
  // A place of the window, in the order of sums.
  struct Place {
    size_t row;    // of the rows under a line of outputs
    size_t plane;  // where its numbers begin in the planes of the row
    const float* weights;
  };

  void findPlaces() {
    const Convolution& g = layer_.geometry;
    // XNNPACK computes such layers as depthwise ones, column by column.
    constexpr size_t kMostDepthwisePlaces = 25;
    const size_t channels = g.groupInputChannels;
    const size_t count = size_t{g.kernelHeight} * g.kernelWidth;
    const bool isByColumn =
        channels == 1 && g.groupOutputChannels == 1 && count <= kMostDepthwisePlaces;
    for (size_t i = 0; i < count; ++i) {
      const size_t y = isByColumn ? i % g.kernelHeight : i / g.kernelWidth;
      const size_t x = isByColumn ? i / g.kernelHeight : i % g.kernelWidth;
      const size_t column = x * g.dilationWidth;
      places_.push_back(
          {y * g.dilationHeight,
           column % g.strideWidth * channels * lines_.planes().planeSize + column / g.strideWidth,
           layer_.weights + (y * g.kernelWidth + x) * channels});
    }
  }

  void compute(NarrowLines::Task& task) const {
    const Convolution& g = layer_.geometry;
    const size_t columns = g.groupOutputChannels;
    for (size_t y = task.begin; y < task.end; ++y) {
      for (size_t i = 0; i < places_.size(); ++i)
        task.window[i] = {task.planesOf(y, places_[i].row) + places_[i].plane, places_[i].weights};
      multiplyF32NarrowLine({.taps = places_.size(),
                             .channels = g.groupInputChannels,
                             .window = task.window,
                             .channelStep = lines_.planes().planeSize,
                             .columns = columns,
                             .columnStep = places_.size() * g.groupInputChannels,
                             .bias = layer_.bias == nullptr ? noBias_.data() : layer_.bias,
                             .lowest = layer_.lowest,
                             .highest = layer_.highest,
                             .outputs = task.count,
                             .results = task.results,
                             .resultStep = lines_.resultStep()});
      float* const output =
          destination_ + ((task.image * g.outputHeight + y) * g.outputWidth + task.first) * columns;
      if (columns == 1) {
        std::copy_n(task.results, task.count, output);
        continue;
      }
      for (size_t column = 0; column < columns; ++column)
        for (size_t x = 0; x < task.count; ++x)
          output[x * columns + column] = task.results[column * lines_.resultStep() + x];
    }
  }

  const F32NarrowConvolution layer_;
  NarrowLines lines_;
  std::vector<float> noBias_;
  std::vector<Place> places_;
  const float* source_ = nullptr;
  float* destination_ = nullptr;
  float* workspace_ = nullptr;
};

}  // namespace

bool hasF32Narrow(const Convolution& g) {
  const size_t lanes = f32NarrowLanes();
  const size_t columns = g.groupOutputChannels;
  if (g.isDepthwise || g.groups != 1 || columns > lanes / 2 || g.outputWidth < kF32NarrowOutputs ||
      shapeOf(g).outputsThatFit() < NarrowLines::kLeastOutputs)
    return false;
  // What one output takes, in vectors that are multiplied: of a product over a panel, and here,
  // where numbers of the input and of several columns are copied one by one.
  constexpr double kCopy = 3;
  const double channels = static_cast<double>(g.groupInputChannels);
  const double product = channels * g.kernelHeight * g.kernelWidth;
  const double copied =
      channels * g.strideHeight * g.strideWidth + static_cast<double>(columns > 1 ? columns : 0);
  const double here =
      product * static_cast<double>(columns) / static_cast<double>(lanes) + kCopy * copied;
  constexpr double kWorthIt = 0.75;
  return here < kWorthIt * product;
}

std::unique_ptr<Kernel> makeF32NarrowKernel(const F32NarrowConvolution& layer) {
  return std::make_unique<F32NarrowKernel>(layer);
}

Result<bool> addF32Narrow(PlanBuilder* builder, const Convolution& convolution) {
  const Convolution& g = convolution;
  if (builder->operand(g.input).type != graph::OperandType::kTensorFloat32 || !hasF32Narrow(g))
    return false;
  F32NarrowConvolution layer;
  layer.geometry = g;
  HEARTH_ASSIGN(const uint8_t* const weights, builder->constants().rawData(g.filter));
  layer.weights = reinterpret_cast<const float*>(weights);
  if (g.bias != UINT32_MAX) {
    HEARTH_ASSIGN(const uint8_t* const bias, builder->constants().rawData(g.bias));
    layer.bias = reinterpret_cast<const float*>(bias);
  }
  const ops::ActivationRange range = ops::activationRange(g.activation);
  layer.lowest = range.lowest;
  layer.highest = range.highest;
  layer.source = builder->read(g.input);
  layer.destination = builder->write(g.output);
  builder->add("own", {layer.source}, {layer.destination}).create =
      [layer]() -> Result<std::unique_ptr<Kernel>> {
    return makeF32NarrowKernel(layer);
  };
  return true;
}

}  // namespace hearth::cpu
