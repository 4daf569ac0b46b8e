// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/f32_narrow_convolution.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "drivers/cpu/lowering/channel_planes.h"
#include "drivers/cpu/microkernels/x86/f32_narrow_line.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// Numbers of the input that a task rearranges: they stay in the second-level cache.
constexpr size_t kMostNumbers = size_t{64} << 10;
// Outputs of a line in one task; with fewer than the least, much of the input would be read again.
constexpr size_t kMostOutputs = 1024;
constexpr size_t kLeastOutputs = 64;
// Fewer tasks than this for a thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 4;

constexpr size_t roundedUp(size_t outputs) {
  return (outputs + kF32NarrowOutputs - 1) / kF32NarrowOutputs * kF32NarrowOutputs;
}

// The rearranged input (see ChannelPlanes) of lines of outputs.
struct Planes {
  size_t channels, rows;  // rows: under one line of outputs
  size_t phases;
  size_t reach;  // numbers of a phase behind those of the outputs

  explicit Planes(const Convolution& g)
      : channels(g.groupInputChannels),
        rows(size_t{g.kernelHeight - 1} * g.dilationHeight + 1),
        phases(std::min<size_t>(g.strideWidth, lastColumn(g) + 1)),
        reach(lastColumn(g) / g.strideWidth) {}

  static size_t lastColumn(const Convolution& g) {
    return size_t{g.kernelWidth - 1} * g.dilationWidth;
  }

  // Numbers of all rows for one output, which may be as many as fit; 0 if even these do not.
  size_t numbersOfOutput() const {
    if (channels > kMostNumbers || rows > kMostNumbers || phases > kMostNumbers) return 0;
    const size_t numbers = channels * rows * phases;
    return numbers <= kMostNumbers ? numbers : 0;
  }
  // How many outputs of a line fit.
  size_t outputsThatFit() const {
    const size_t numbers = numbersOfOutput();
    if (numbers == 0) return 0;
    const size_t all = kMostNumbers / numbers;
    return all <= reach ? 0 : (all - reach) / kF32NarrowOutputs * kF32NarrowOutputs;
  }
};

class F32NarrowKernel final : public Kernel {
 public:
  explicit F32NarrowKernel(const F32NarrowConvolution& layer)
      : layer_(layer), planes_(layer.geometry) {
    const Convolution& g = layer_.geometry;
    noBias_.resize(g.groupOutputChannels);
    const size_t most = std::min(planes_.outputsThatFit(), kMostOutputs);
    const size_t chunks = (g.outputWidth + most - 1) / most;
    outputsPerTask_ = roundedUp((g.outputWidth + chunks - 1) / chunks);
    chunks_ = (g.outputWidth + outputsPerTask_ - 1) / outputsPerTask_;
    arranged_ = {.height = g.inputHeight,
                 .width = g.inputWidth,
                 .channels = planes_.channels,
                 .stride = g.strideWidth,
                 .phases = planes_.phases,
                 .planeSize = outputsPerTask_ + planes_.reach};
    rowSize_ = arranged_.rowSize();
    findPlaces();
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const Convolution& g = layer_.geometry;
    const size_t threads = threads::threadsOf(pool);
    const size_t rowsThatFit = std::max(planes_.rows, kMostNumbers / rowSize_);
    const size_t mostLines = (rowsThatFit - planes_.rows) / g.strideHeight + 1;
    blocks_ = (g.outputHeight + mostLines - 1) / mostLines;
    if (threads > 1 && isWorthDividing()) {
      const size_t others = g.batch * chunks_;
      const auto blocksFor = [&](size_t tasks) {
        return (tasks + others - 1) / others;
      };
      // Each block rearranges the rows above its first line again.
      const size_t most = std::max(g.outputHeight / planes_.rows, blocksFor(threads));
      blocks_ = std::max(blocks_, std::min(blocksFor(threads * kTasksPerThread), most));
      blocks_ = std::min(blocks_, g.outputHeight);
    }
    const size_t lines = (g.outputHeight + blocks_ - 1) / blocks_;
    rowsPerTask_ = (lines - 1) * g.strideHeight + planes_.rows;
    numbersPerThread_ = rowsPerTask_ * rowSize_ + g.groupOutputChannels * outputsPerTask_;
    isArranged_.resize(threads * rowsPerTask_);
    window_.resize(threads * places_.size());
    return threads * numbersPerThread_ * sizeof(float);
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    source_ = static_cast<const float*>(addresses[layer_.source]);
    destination_ = static_cast<float*>(addresses[layer_.destination]);
    workspace_ = static_cast<float*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const Convolution& g = layer_.geometry;
    threads::forTasks(pool, g.batch * blocks_ * chunks_, [&](size_t task, size_t thread) {
      const size_t first = task % chunks_ * outputsPerTask_;
      const size_t block = task / chunks_ % blocks_;
      compute(task / chunks_ / blocks_, block * g.outputHeight / blocks_,
              (block + 1) * g.outputHeight / blocks_, first,
              std::min(outputsPerTask_, g.outputWidth - first), thread);
    });
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
    const size_t count = size_t{g.kernelHeight} * g.kernelWidth;
    const bool isByColumn =
        g.groupInputChannels == 1 && g.groupOutputChannels == 1 && count <= kMostDepthwisePlaces;
    for (size_t i = 0; i < count; ++i) {
      const size_t y = isByColumn ? i % g.kernelHeight : i / g.kernelWidth;
      const size_t x = isByColumn ? i / g.kernelHeight : i % g.kernelWidth;
      const size_t column = x * g.dilationWidth;
      places_.push_back(
          {y * g.dilationHeight,
           column % g.strideWidth * planes_.channels * arranged_.planeSize + column / g.strideWidth,
           layer_.weights + (y * g.kernelWidth + x) * planes_.channels});
    }
  }

  // Whether it takes some tens of microseconds.
  bool isWorthDividing() const {
    constexpr double kManySteps = 1 << 20;
    const Convolution& g = layer_.geometry;
    return static_cast<double>(g.batch * g.outputHeight * g.outputWidth) *
               static_cast<double>(places_.size() * planes_.channels * g.groupOutputChannels) >=
           kManySteps;
  }

  // Computes `count` outputs, from `first` on, of lines of an image.
  void compute(size_t image, size_t begin, size_t end, size_t first, size_t count, size_t thread) {
    const Convolution& g = layer_.geometry;
    const size_t columns = g.groupOutputChannels;
    float* const rows = workspace_ + thread * numbersPerThread_;
    float* const results = rows + rowsPerTask_ * rowSize_;
    const std::span<uint8_t> isArranged(isArranged_.data() + thread * rowsPerTask_, rowsPerTask_);
    F32NarrowTap* const window = window_.data() + thread * places_.size();
    std::ranges::fill(isArranged, 0);
    for (size_t y = begin; y < end; ++y) {
      for (size_t i = 0; i < places_.size(); ++i) {
        const Place& place = places_[i];
        const size_t row = (y - begin) * g.strideHeight + place.row;
        if (!isArranged[row]) {
          isArranged[row] = 1;
          arranged_.arrange(source_ + image * g.inputHeight * g.inputWidth * planes_.channels,
                            static_cast<int64_t>(begin * g.strideHeight + row) - g.top,
                            static_cast<int64_t>(first * g.strideWidth) - g.left,
                            count + planes_.reach, rows + row * rowSize_);
        }
        window[i] = {rows + row * rowSize_ + place.plane, place.weights};
      }
      multiplyF32NarrowLine({.taps = places_.size(),
                             .channels = planes_.channels,
                             .window = window,
                             .channelStep = arranged_.planeSize,
                             .columns = columns,
                             .columnStep = places_.size() * planes_.channels,
                             .bias = layer_.bias == nullptr ? noBias_.data() : layer_.bias,
                             .lowest = layer_.lowest,
                             .highest = layer_.highest,
                             .outputs = count,
                             .results = results,
                             .resultStep = outputsPerTask_});
      float* const output =
          destination_ + ((image * g.outputHeight + y) * g.outputWidth + first) * columns;
      if (columns == 1) {
        std::copy_n(results, count, output);
        continue;
      }
      for (size_t column = 0; column < columns; ++column)
        for (size_t x = 0; x < count; ++x)
          output[x * columns + column] = results[column * outputsPerTask_ + x];
    }
  }

  const F32NarrowConvolution layer_;
  const Planes planes_;
  std::vector<float> noBias_;
  std::vector<Place> places_;
  size_t outputsPerTask_ = 0;  // of a line; a multiple of kF32NarrowOutputs
  size_t chunks_ = 1;          // of a line
  size_t blocks_ = 1;          // of the lines of an image
  ChannelPlanes arranged_;
  size_t rowSize_ = 0;
  size_t rowsPerTask_ = 0;
  size_t numbersPerThread_ = 0;
  std::vector<uint8_t> isArranged_;   // by thread and row
  std::vector<F32NarrowTap> window_;  // by thread and place
  const float* source_ = nullptr;
  float* destination_ = nullptr;
  float* workspace_ = nullptr;
};

}  // namespace

bool hasF32Narrow(const Convolution& g) {
  const size_t lanes = f32NarrowLanes();
  const size_t columns = g.groupOutputChannels;
  if (g.isDepthwise || g.groups != 1 || columns > lanes / 2 || g.outputWidth < kF32NarrowOutputs ||
      Planes(g).outputsThatFit() < kLeastOutputs)
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
