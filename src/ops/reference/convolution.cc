// SPDX-License-Identifier: Apache-2.0
// Convolutions: each element of the output is a sum over the window of the input below it.
#include <algorithm>

#include "ops/conv_2d.h"
#include "ops/reference/kernels.h"
#include "ops/reference/layer.h"
#include "ops/transpose_conv_2d.h"

namespace hearth::ops::reference {
namespace {

// Access to the elements of one channel of images, by batch element, row and column.
struct Channel {
  Channel(const ImageShape& shape, bool isNchw, int64_t number)
      : layout(shape, isNchw), first(number * static_cast<int64_t>(layout.channelStride)) {}
  int64_t place(int64_t batch, int64_t row, int64_t column) const {
    return first +
           static_cast<int64_t>(layout.offset(static_cast<size_t>(batch), static_cast<size_t>(row),
                                              static_cast<size_t>(column)));
  }
  int64_t channelStep() const { return static_cast<int64_t>(layout.channelStride); }

  ImageLayout layout;
  int64_t first;
};

// Each output channel reads `groupInputChannels` neighbouring channels of the input. Its weights,
// one for each of these at each position of the window, are `weightStep` apart in the filter.
Status convolveGroups(const OperationContext& context, const Conv2dParameters& p,
                      bool isDepthwise) {
  const Window2d& w = p.window;
  if (countOf(context.outputs[0].dimensions) == 0) return {};
  const LayerOutput output(context, p.activation);
  const int64_t depth = p.groupInputChannels;
  const int64_t area = int64_t{w.filterHeight} * w.filterWidth;
  visitData(context, p.input.batches, [&](const auto* data, double zeroPoint) {
    for (int64_t channel = 0; channel < p.output.channels; ++channel) {
      const std::vector<double> weights =
          isDepthwise ? weightsAt(context, channel, p.output.channels, area)
                      : weightsAt(context, channel * area * depth, 1, area * depth);
      const Channel from(p.input, p.isNchw, channel / p.groupOutputChannels * depth);
      const Channel to(p.output, p.isNchw, channel);
      const auto sumAt = [&](int64_t batch, int64_t y, int64_t x) {
        double sum = 0;
        for (int64_t i = 0; i < w.filterHeight; ++i)
          for (int64_t j = 0; j < w.filterWidth; ++j) {
            const int64_t row = y * w.strideHeight - w.padding.top + i * w.dilationHeight;
            const int64_t column = x * w.strideWidth - w.padding.left + j * w.dilationWidth;
            if (row < 0 || row >= p.input.height || column < 0 || column >= p.input.width) continue;
            sum +=
                sumOfProducts(data + from.place(batch, row, column), from.channelStep(), zeroPoint,
                              weights.data() + (i * w.filterWidth + j) * depth, depth);
          }
        return sum;
      };
      for (int64_t batch = 0; batch < p.output.batches; ++batch)
        for (int64_t y = 0; y < p.output.height; ++y)
          for (int64_t x = 0; x < p.output.width; ++x)
            output.put(to.place(batch, y, x), channel, sumAt(batch, y, x));
    }
  });
  return {};
}

// How the filter moves over a volume: the input of CONV_3D, the output of CONV_3D_TRANSPOSE.
struct VolumeWindow {
  int64_t strides[3];
  int64_t dilations[3];
  int64_t before[3];  // padding

  // The pixel of the volume below a tap; -1 outside. position[0] is the batch element.
  int64_t pixelBelow(const Index& position, const Index& tap, const Dimensions& volume) const {
    int64_t pixel = position[0];
    for (size_t i = 0; i < 3; ++i) {
      const int64_t at = position[i + 1] * strides[i] - before[i] + tap[i] * dilations[i];
      if (at < 0 || at >= volume[i + 1]) return -1;
      pixel = pixel * volume[i + 1] + at;
    }
    return pixel;
  }
};

// Inputs 3 to 9 are the padding code, strides and dilations.
Result<VolumeWindow> volumeWindow(const OperationContext& context, const Dimensions& volume,
                                  const Dimensions& positions) {
  const Dimensions& filter = context.inputs[1].dimensions;
  HEARTH_ASSIGN(const int32_t padding, context.scalar<int32_t>(3));
  VolumeWindow window{};
  for (size_t i = 0; i < 3; ++i) {
    HEARTH_ASSIGN(window.strides[i], context.scalar<int32_t>(4 + i));
    HEARTH_ASSIGN(window.dilations[i], context.scalar<int32_t>(7 + i));
    const int64_t reach = window.dilations[i] * (int64_t{filter[i]} - 1) + 1;
    // With SAME an odd element of padding goes to the end.
    const int64_t covered = (int64_t{positions[i + 1]} - 1) * window.strides[i] + reach;
    if (padding == 1) window.before[i] = std::max<int64_t>(covered - volume[i + 1], 0) / 2;
  }
  return window;
}

}  // namespace

Status convolve(const OperationContext& context) {
  const bool isGrouped = context.operation->type == OperationType::kGroupedConv2d;
  HEARTH_ASSIGN(const Conv2dParameters parameters,
                isGrouped ? parseGroupedConv2d(context) : parseConv2d(context));
  return convolveGroups(context, parameters, false);
}

Status convolveDepthwise(const OperationContext& context) {
  HEARTH_ASSIGN(const Conv2dParameters parameters, parseDepthwiseConv2d(context));
  return convolveGroups(context, parameters, true);
}

// Each element of the input is added to a window of the output.
Status convolveTransposed(const OperationContext& context) {
  HEARTH_ASSIGN(const TransposeConv2dParameters p, parseTransposeConv2d(context));
  const Window2d& w = p.window;
  if (countOf(context.outputs[0].dimensions) == 0) return {};
  const LayerOutput output(context, p.activation);
  const int64_t depth = p.input.channels;
  const int64_t area = int64_t{w.filterHeight} * w.filterWidth;
  const Channel from(p.input, p.isNchw, 0);
  std::vector<double> sums(size_t{p.output.height} * p.output.width);
  visitData(context, p.input.batches, [&](const auto* data, double zeroPoint) {
    for (int64_t channel = 0; channel < p.output.channels; ++channel) {
      const std::vector<double> weights =
          weightsAt(context, channel * area * depth, 1, area * depth);
      const Channel to(p.output, p.isNchw, channel);
      for (int64_t batch = 0; batch < p.output.batches; ++batch) {
        std::ranges::fill(sums, 0.0);
        const auto addWindow = [&](int64_t y, int64_t x) {
          for (int64_t i = 0; i < w.filterHeight; ++i)
            for (int64_t j = 0; j < w.filterWidth; ++j) {
              const int64_t row = y * w.strideHeight - w.padding.top + i;
              const int64_t column = x * w.strideWidth - w.padding.left + j;
              if (row < 0 || row >= p.output.height || column < 0 || column >= p.output.width)
                continue;
              sums[static_cast<size_t>(row * p.output.width + column)] +=
                  sumOfProducts(data + from.place(batch, y, x), from.channelStep(), zeroPoint,
                                weights.data() + (i * w.filterWidth + j) * depth, depth);
            }
        };
        for (int64_t y = 0; y < p.input.height; ++y)
          for (int64_t x = 0; x < p.input.width; ++x) addWindow(y, x);
        for (int64_t y = 0; y < p.output.height; ++y)
          for (int64_t x = 0; x < p.output.width; ++x)
            output.put(to.place(batch, y, x), channel,
                       sums[static_cast<size_t>(y * p.output.width + x)]);
      }
    }
  });
  return {};
}

// Data [n, depth, height, width, channels], filter [depth, height, width, channels, outputs].
Status convolve3d(const OperationContext& context) {
  const Dimensions& data = context.inputs[0].dimensions;
  const Dimensions& filter = context.inputs[1].dimensions;
  const Dimensions& result = context.outputs[0].dimensions;
  HEARTH_ASSIGN(const VolumeWindow window, volumeWindow(context, data, result));
  HEARTH_ASSIGN(const FusedActivation activation, parseActivation(context, 10));
  const int64_t inputs = filter[3];
  const int64_t outputs = filter[4];
  const LayerOutput output(context, activation);
  if (countOf(result) == 0) return {};
  visitData(context, 1, [&](const auto* elements, double zeroPoint) {
    for (int64_t channel = 0; channel < outputs; ++channel) {
      const std::vector<double> weights =
          weightsAt(context, channel, outputs, countOf(filter) / outputs);
      forEach({result[0], result[1], result[2], result[3]}, [&](const Index& index, int64_t pixel) {
        double sum = 0;
        forEach({filter[0], filter[1], filter[2]}, [&](const Index& tap, int64_t tapPlace) {
          const int64_t from = window.pixelBelow(index, tap, data);
          if (from < 0) return;
          sum += sumOfProducts(elements + from * inputs, 1, zeroPoint,
                               weights.data() + tapPlace * inputs, inputs);
        });
        output.put(pixel * outputs + channel, channel, sum);
      });
    }
  });
  return {};
}

// Data [n, depth, height, width, channels], filter [depth, height, width, outputs, channels].
Status convolve3dTransposed(const OperationContext& context) {
  const Dimensions& data = context.inputs[0].dimensions;
  const Dimensions& filter = context.inputs[1].dimensions;
  const Dimensions& result = context.outputs[0].dimensions;
  HEARTH_ASSIGN(const VolumeWindow window, volumeWindow(context, result, data));
  HEARTH_ASSIGN(const FusedActivation activation, parseActivation(context, 10));
  const int64_t outputs = filter[3];
  const int64_t inputs = filter[4];
  const LayerOutput output(context, activation);
  if (countOf(result) == 0) return {};
  visitData(context, 1, [&](const auto* elements, double zeroPoint) {
    for (int64_t channel = 0; channel < outputs; ++channel) {
      std::vector<double> sums(static_cast<size_t>(countOf(result) / outputs));
      forEach({filter[0], filter[1], filter[2]}, [&](const Index& tap, int64_t tapPlace) {
        const std::vector<double> weights =
            weightsAt(context, (tapPlace * outputs + channel) * inputs, 1, inputs);
        forEach({data[0], data[1], data[2], data[3]}, [&](const Index& index, int64_t pixel) {
          const int64_t to = window.pixelBelow(index, tap, result);
          if (to < 0) return;
          sums[static_cast<size_t>(to)] +=
              sumOfProducts(elements + pixel * inputs, 1, zeroPoint, weights.data(), inputs);
        });
      });
      for (size_t i = 0; i < sums.size(); ++i)
        output.put(static_cast<int64_t>(i) * outputs + channel, channel, sums[i]);
    }
  });
  return {};
}

}  // namespace hearth::ops::reference
