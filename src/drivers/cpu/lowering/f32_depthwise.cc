// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/f32_depthwise.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/vector_dispatch.h"
#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/depthwise_places_kernel.h"
#include "drivers/cpu/microkernels/x86/dwconv_windows.h"
#include "drivers/cpu/microkernels/x86/f32_dwconv.h"
#include "threads/parallel_ranges.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// Calls step.operator()<0>() to step.operator()<kCount - 1>(). Loops here that the compiler did not
// unroll would keep it from vectorizing the loop over channels around them.
template <size_t kCount, typename Step>
HEARTH_INLINE inline void unroll(const Step& step) {
  [&]<size_t... kIndex>(std::index_sequence<kIndex...>) HEARTH_INLINE {
    (step.template operator()<kIndex>(), ...);
  }(std::make_index_sequence<kCount>());
}

// Channels [begin, end).
struct Channels {
  size_t begin, end;
};

// Computes channels of kOutputs outputs, whose windows of kKernel rows and columns begin kStride
// columns apart. columns[x * kKernel + y] points to all channels of a tap; outputs are written
// `step` pixels apart.
template <size_t kKernel, size_t kOutputs, size_t kStride>
void multiply(const F32Depthwise& layer, const float* bias, const float* const* columns,
              Channels range, float* output, size_t step) {
  constexpr size_t kInputs = ((kOutputs - 1) * kStride + kKernel) * kKernel;
  const size_t channels = layer.geometry.groups;
  base::onWidestVectors(
      [=, weights = layer.weights, lowest = layer.lowest, highest = layer.highest]() HEARTH_INLINE {
        const float* inputs[kInputs];
        unroll<kInputs>([&]<size_t kInput>() HEARTH_INLINE { inputs[kInput] = columns[kInput]; });
#pragma GCC ivdep
        for (size_t c = range.begin; c < range.end; ++c) {
          float sums[kOutputs];
          unroll<kOutputs>([&]<size_t kOutput>() HEARTH_INLINE { sums[kOutput] = bias[c]; });
          unroll<kKernel * kKernel>([&]<size_t kTap>() HEARTH_INLINE {
            // In XNNPACK's order: column by column.
            constexpr size_t kX = kTap / kKernel;
            constexpr size_t kY = kTap % kKernel;
            const float weight = weights[(kY * kKernel + kX) * channels + c];
            unroll<kOutputs>([&]<size_t kOutput>() HEARTH_INLINE {
              const float input = inputs[(kOutput * kStride + kX) * kKernel + kY][c];
              sums[kOutput] = __builtin_fmaf(input, weight, sums[kOutput]);
            });
          });
          unroll<kOutputs>([&]<size_t kOutput>() HEARTH_INLINE {
            // In this order a NaN stays a NaN.
            const float raised = lowest > sums[kOutput] ? lowest : sums[kOutput];
            output[kOutput * step * channels + c] = highest < raised ? highest : raised;
          });
        }
      });
}

using Multiply = decltype(&multiply<3, 1, 1>);

template <size_t kKernel>
Multiply multiplyTileOf(size_t stride) {
  return stride == 1 ? multiply<kKernel, kDepthwiseTile, 1> : multiply<kKernel, kDepthwiseTile, 2>;
}

class F32DepthwiseKernel final : public Kernel {
 public:
  explicit F32DepthwiseKernel(const F32Depthwise& layer)
      : layer_(layer), windows_(layer.geometry, 0.0f) {
    const Convolution& g = layer_.geometry;
    if (layer_.bias == nullptr) noBias_.resize(g.groups);
    bias_ = layer_.bias == nullptr ? noBias_.data() : layer_.bias;
    multiplyOne_ = g.kernelWidth == 3 ? multiply<3, 1, 1> : multiply<5, 1, 1>;
    multiplyTile_ =
        g.kernelWidth == 3 ? multiplyTileOf<3>(g.strideWidth) : multiplyTileOf<5>(g.strideWidth);
    setInside();
  }

  // Where not all threads could get as many lines, these are divided into blocks of channels.
  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const size_t threads = threads::threadsOf(pool);
    const size_t most = std::max<size_t>(1, layer_.geometry.groups / kLeastChannels);
    blocks_ = 1;
    if (windows_.lines() < kManyLines * threads)
      blocks_ = std::min(most, threads / std::gcd(windows_.lines(), threads));
    return 0;
  }

  Status setup(std::span<void* const> addresses, void*) override {
    source_ = static_cast<const float*>(addresses[layer_.source]);
    destination_ = static_cast<float*>(addresses[layer_.destination]);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const Convolution& g = layer_.geometry;
    const size_t lines = windows_.lines();
    const size_t lineSize = g.outputWidth * g.groups;
    // A tap of an output takes as long as copying a byte.
    const size_t work = lineSize * g.kernelHeight * g.kernelWidth / blocks_;
    threads::forRanges(pool, lines * blocks_, threads::grainOf(work),
                       [&](uint64_t begin, uint64_t end) {
                         for (uint64_t i = begin; i < end; ++i) {
                           const uint64_t line = i / blocks_;
                           compute(line, channelsOf(i % blocks_), destination_ + line * lineSize);
                         }
                       });
    return {};
  }

 private:
  // Blocks have at least so many channels, which fill several vectors.
  static constexpr size_t kLeastChannels = 64;
  // Of so many lines for each thread, one more or less does not count.
  static constexpr size_t kManyLines = 8;

  // Blocks begin at whole cache lines of channels.
  Channels channelsOf(size_t block) const {
    constexpr size_t kUnit = 16;
    const size_t channels = layer_.geometry.groups;
    const auto begin = [&](size_t number) {
      return number == blocks_ ? channels : number * channels / blocks_ / kUnit * kUnit;
    };
    return {begin(block), begin(block + 1)};
  }

  // Finds the outputs of a line whose windows are within the columns of the image.
  void setInside() {
    const Convolution& g = layer_.geometry;
    const size_t dilation = g.dilationWidth;
    if ((dilation != 1 && g.strideWidth != 1) || g.strideWidth > kMostDepthwiseStride ||
        !hasF32DwconvLine(g.groups))
      return;
    insideBegin_ = std::min<size_t>((g.left + g.strideWidth - 1) / g.strideWidth, g.outputWidth);
    const size_t reach = g.inputWidth + g.left;  // columns up to the image's end
    const size_t span = (g.kernelWidth - 1) * dilation + 1;
    const size_t end = reach < span ? 0 : (reach - span) / g.strideWidth + 1;
    insideEnd_ = std::min<size_t>(end, g.outputWidth);
    if (insideEnd_ < insideBegin_ + kF32DwconvTile * dilation) insideEnd_ = insideBegin_;
    if (insideEnd_ > insideBegin_) zeros_.resize(size_t{g.inputWidth} * g.groups);
  }

  // The outputs of a dilated convolution that lie `dilation` columns apart are those of one without
  // dilation on such columns.
  void computeInside(const DwconvWindows<float>::Rows& rows, Channels range, float* output) const {
    const Convolution& g = layer_.geometry;
    const size_t dilation = g.dilationWidth;
    for (size_t begin = insideBegin_; begin < insideBegin_ + dilation; ++begin) {
      const size_t first = begin * g.strideWidth - g.left;
      std::array<const float*, kMostDepthwiseKernel> starts{};
      for (size_t y = 0; y < g.kernelHeight; ++y)
        starts[y] = (rows[y] != nullptr ? rows[y] : zeros_.data()) + first * g.groups + range.begin;
      multiplyF32DwconvLine({.kernel = g.kernelWidth,
                             .stride = g.strideWidth,
                             .channels = range.end - range.begin,
                             .step = dilation * g.groups,
                             .weightStep = g.groups,
                             .weights = layer_.weights + range.begin,
                             .bias = bias_ + range.begin,
                             .lowest = layer_.lowest,
                             .highest = layer_.highest,
                             .rows = starts.data(),
                             .outputs = (insideEnd_ - begin + dilation - 1) / dilation,
                             .output = output + begin * g.groups + range.begin});
    }
  }

  // Computes channels of a line of the output.
  void compute(size_t line, Channels range, float* output) const {
    const size_t channels = layer_.geometry.groups;
    if (insideEnd_ > insideBegin_) {
      const auto rows = windows_.rowsOf(source_, line);
      const auto one = [&](const float* const* columns, size_t x) {
        multiplyOne_(layer_, bias_, columns, range, output + x * channels, 1);
      };
      windows_.forOutputs(rows, 0, insideBegin_, one);
      computeInside(rows, range, output);
      return windows_.forOutputs(rows, insideEnd_, layer_.geometry.outputWidth, one);
    }
    windows_.forLine(
        source_, line,
        [&](const float* const* columns, size_t x) {
          multiplyOne_(layer_, bias_, columns, range, output + x * channels, 1);
        },
        [&](const float* const* columns, size_t x, size_t step) {
          multiplyTile_(layer_, bias_, columns, range, output + x * channels, step);
        });
  }

  const F32Depthwise layer_;
  const DwconvWindows<float> windows_;
  size_t blocks_ = 1;  // of channels
  const float* source_ = nullptr;
  float* destination_ = nullptr;
  std::vector<float> noBias_;
  const float* bias_ = nullptr;
  Multiply multiplyOne_ = nullptr;
  Multiply multiplyTile_ = nullptr;
  size_t insideBegin_ = 0, insideEnd_ = 0;
  std::vector<float> zeros_;  // a line of padding
};

class F32PlacesKernel final : public DepthwisePlacesKernel<float, F32Depthwise> {
 public:
  explicit F32PlacesKernel(const F32Depthwise& layer)
      : DepthwisePlacesKernel(layer, 0.0f, isByColumn(layer.geometry)) {
    const Convolution& g = layer_.geometry;
    for (const Place& place : places_)
      weights_.push_back(layer_.weights + (place.y * g.kernelWidth + place.x) * g.groups);
  }

 private:
  static_assert(kTogether == kF32DwconvWindows);

  static bool isByColumn(const Convolution& g) {
    // The most places of XNNPACK's depthwise kernels; it multiplies larger windows as convolutions.
    constexpr size_t kMostPlaces = 25;
    return size_t{g.kernelHeight} * g.kernelWidth <= kMostPlaces;
  }

  void compute(const float* const* inputs, size_t count, float* output) const override {
    multiplyF32DwconvWindows({.taps = places_.size(),
                              .channels = layer_.geometry.groups,
                              .weights = weights_.data(),
                              .inputs = inputs,
                              .outputs = count,
                              .bias = layer_.bias == nullptr ? padding_.data() : layer_.bias,
                              .lowest = layer_.lowest,
                              .highest = layer_.highest,
                              .output = output});
  }

  std::vector<const float*> weights_;  // of each place
};

bool hasFusedVectors() {
#if defined(__x86_64__)
  // The instructions that base::onWidestVectors() chooses by.
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("f16c");
  return has;
#else
  return false;
#endif
}

// Whether F32DepthwiseKernel computes such windows.
bool isOfUsualSize(const Convolution& g) {
  return g.kernelHeight == g.kernelWidth && (g.kernelWidth == 3 || g.kernelWidth == 5);
}

}  // namespace

bool hasF32Depthwise(const Convolution& g) {
  const bool isDepthwise = g.isDepthwise && g.groupInputChannels == 1 && g.groupOutputChannels == 1;
  const bool isOnePlace = g.kernelHeight == 1 && g.kernelWidth == 1;
  return isDepthwise && !isOnePlace && hasFusedVectors() &&
         (isOfUsualSize(g) || hasF32DwconvLine(g.groups));
}

std::unique_ptr<Kernel> makeF32DepthwiseKernel(const F32Depthwise& layer) {
  if (!isOfUsualSize(layer.geometry)) return std::make_unique<F32PlacesKernel>(layer);
  return std::make_unique<F32DepthwiseKernel>(layer);
}

Result<bool> addF32Depthwise(PlanBuilder* builder, const Convolution& convolution) {
  F32Depthwise layer;
  Convolution& g = layer.geometry;
  g = convolution;
  if (builder->operand(g.input).type != graph::OperandType::kTensorFloat32 || !hasF32Depthwise(g))
    return false;
  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
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
    return makeF32DepthwiseKernel(layer);
  };
  return true;
}

}  // namespace hearth::cpu
