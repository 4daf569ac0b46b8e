// SPDX-License-Identifier: Apache-2.0
// DEPTHWISE_CONV_2D. Inputs, after data, filter and bias: implicit padding code or left, right,
// top, bottom; stride width and height; depth multiplier; activation; layout; dilations.
#include <algorithm>
#include <vector>

#include "ops/conv_2d.h"
#include "ops/convolution.h"
#include "ops/registry.h"
#include "ops/symmetric16.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

struct Arguments {
  WindowArguments window;
  size_t multiplier;
  size_t minimumCount;
  size_t maximumCount;
};

constexpr Arguments kImplicitArguments = {{true, 3, 4, 9, 7, 8}, 6, 8, 11};
constexpr Arguments kExplicitArguments = {{false, 3, 7, 12, 10, 11}, 9, 11, 14};

Arguments argumentsOf(size_t count, bool isInput8Bool) {
  return count == 8 || (count > 8 && isInput8Bool) ? kImplicitArguments : kExplicitArguments;
}

Arguments argumentsOf(const OperationContext& context) {
  return argumentsOf(context.inputs.size(),
                     context.inputs.size() > 8 && context.inputs[8].type() == OperandType::kBool);
}

Status validate(const Signature& signature) {
  const Arguments arguments =
      argumentsOf(signature.inputCount(), signature.isInputOfType(8, OperandType::kBool));
  HEARTH_TRY(signature.counts(arguments.minimumCount, arguments.maximumCount, 1));
  return validateConvolution(signature, 3, arguments.window.padding, arguments.window.layout);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Conv2dParameters p, parseDepthwiseConv2d(context));
  return context.setOutputDimensions(0, p.output.dimensions(p.isNchw));
}

// Adds one filter tap to the sums of all channels of one output pixel.
template <typename T, typename Sum>
void addTap(const Conv2dParameters& p, const T* pixel, size_t channelStride, const T* tap,
            Sum* sums) {
  if (p.groupOutputChannels == 1 && channelStride == 1) {
    for (size_t c = 0; c < p.groups; ++c) sums[c] += static_cast<Sum>(pixel[c] * tap[c]);
    return;
  }
  for (size_t c = 0; c < p.groups; ++c) {
    const T value = pixel[c * channelStride];
    for (size_t i = 0; i < p.groupOutputChannels; ++i) {
      const size_t channel = c * p.groupOutputChannels + i;
      sums[channel] += static_cast<Sum>(value * tap[channel]);
    }
  }
}

// The sums of one line of the output, for 16-bit activations.
void computeSymmetric16(const Conv2dParameters& p, const int16_t* image, const int8_t* filter,
                        const Symmetric16Output& output, int64_t row, int32_t* sums,
                        int16_t* target) {
  const Symmetric16Output* const steps = &output;
  base::onWidestVectors([=, w = p.window, channels = size_t{p.output.channels},
                         inputs = size_t{p.input.channels},
                         multiplier = size_t{p.groupOutputChannels}, height = p.input.height,
                         width = p.input.width, columns = p.output.width]() HEARTH_INLINE {
    const int64_t top = row * w.strideHeight - w.padding.top;
    for (uint32_t column = 0; column < columns; ++column) {
      const int64_t left = int64_t{column} * w.strideWidth - w.padding.left;
      for (size_t c = 0; c < channels; ++c) sums[c] = 0;
      for (int64_t i = 0; i < w.filterHeight; ++i) {
        const int64_t y = top + i * w.dilationHeight;
        if (y < 0 || y >= height) continue;
        for (int64_t j = 0; j < w.filterWidth; ++j) {
          const int64_t x = left + j * w.dilationWidth;
          if (x < 0 || x >= width) continue;
          const int16_t* const pixel = image + static_cast<size_t>(y * width + x) * inputs;
          const int8_t* const tap = filter + static_cast<size_t>(i * w.filterWidth + j) * channels;
          if (multiplier == 1) {
#pragma GCC ivdep
            for (size_t c = 0; c < channels; ++c) sums[c] += int32_t{pixel[c]} * int32_t{tap[c]};
          } else {
            for (size_t c = 0; c < channels; ++c)
              sums[c] += int32_t{pixel[c / multiplier]} * int32_t{tap[c]};
          }
        }
      }
      steps->store(sums, target + column * channels);
    }
  });
}

void executeSymmetric16(const OperationContext& context, const Conv2dParameters& p) {
  const size_t channels = p.output.channels;
  const Symmetric16Output output(context, p.activation, channels);
  const auto* const input = context.inputs[0].as<int16_t>();
  const auto* const filter = context.inputs[1].as<int8_t>();
  auto* const target = context.outputs[0].as<int16_t>();
  const uint64_t lineSize = uint64_t{p.output.width} * channels;
  const uint64_t imageSize = uint64_t{p.input.height} * p.input.width * p.input.channels;
  // An output takes as long as copying its window some times.
  const uint64_t window =
      static_cast<uint64_t>(p.window.filterHeight) * static_cast<uint64_t>(p.window.filterWidth);
  threads::forRanges(context.threadPool, uint64_t{p.output.batches} * p.output.height,
                     threads::grainOf(lineSize * window * sizeof(int16_t)),
                     [&](uint64_t begin, uint64_t end) {
                       std::vector<int32_t> sums(channels);
                       for (uint64_t line = begin; line < end; ++line)
                         computeSymmetric16(p, input + line / p.output.height * imageSize, filter,
                                            output, static_cast<int64_t>(line % p.output.height),
                                            sums.data(), target + line * lineSize);
                     });
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Conv2dParameters p, parseDepthwiseConv2d(context));
  const uint64_t window =
      static_cast<uint64_t>(p.window.filterHeight) * static_cast<uint64_t>(p.window.filterWidth);
  if (!p.isNchw && isSymmetric16Layer(context, window)) {
    executeSymmetric16(context, p);
    return {};
  }
  const Window2d& w = p.window;
  const ImageLayout inputLayout(p.input, p.isNchw);
  const ImageLayout outputLayout(p.output, p.isNchw);
  const size_t channels = p.output.channels;
  computeWithFilter(
      context, p.activation, [&]<typename T>(const T* input, const T* filter, const auto& store) {
        std::vector<typename Accumulator<T>::Type> sums(channels);
        for (uint32_t b = 0; b < p.output.batches; ++b) {
          for (uint32_t row = 0; row < p.output.height; ++row) {
            const int64_t top = int64_t{row} * w.strideHeight - w.padding.top;
            for (uint32_t column = 0; column < p.output.width; ++column) {
              const int64_t left = int64_t{column} * w.strideWidth - w.padding.left;
              std::fill(sums.begin(), sums.end(), 0);
              for (int64_t i = 0; i < w.filterHeight; ++i) {
                const int64_t y = top + i * w.dilationHeight;
                if (y < 0 || y >= p.input.height) continue;
                for (int64_t j = 0; j < w.filterWidth; ++j) {
                  const int64_t x = left + j * w.dilationWidth;
                  if (x < 0 || x >= p.input.width) continue;
                  addTap(
                      p,
                      input + inputLayout.offset(b, static_cast<size_t>(y), static_cast<size_t>(x)),
                      inputLayout.channelStride,
                      filter + static_cast<size_t>(i * w.filterWidth + j) * channels, sums.data());
                }
              }
              const size_t base = outputLayout.offset(b, row, column);
              for (size_t c = 0; c < channels; ++c)
                store(base + c * outputLayout.channelStride, c, sums[c]);
            }
          }
        }
      });
  return {};
}

}  // namespace

Result<Conv2dParameters> parseDepthwiseConv2d(const OperationContext& context) {
  const Arguments arguments = argumentsOf(context);
  Conv2dParameters p;
  HEARTH_TRY(parseConvolutionWindow(context, arguments.window, &p));
  const Dimensions& filter = context.inputs[1].dimensions;
  HEARTH_TRY(parsePadding(context, arguments.window.padding, arguments.window.isImplicit, p.input,
                          &p.window));
  HEARTH_ASSIGN(const int32_t multiplier, context.scalar<int32_t>(arguments.multiplier));
  if (multiplier <= 0 || filter[0] != 1 || p.input.channels == 0 ||
      int64_t{multiplier} * p.input.channels != filter[3])
    return fail(ErrorCode::kBadData,
                "The filter {} of {} does not fit {} input channels and the depth multiplier {}.",
                graph::describeDimensions(filter), context.describe(), p.input.channels,
                multiplier);
  p.groups = p.input.channels;
  p.groupInputChannels = 1;
  p.groupOutputChannels = static_cast<uint32_t>(multiplier);
  HEARTH_TRY(checkBias(context, filter[3]));
  p.output = {p.input.batches, outputHeight(p.window, p.input.height),
              outputWidth(p.window, p.input.width), filter[3]};
  return p;
}

const OperationDefinition kDepthwiseConv2dOperation = {OperationType::kDepthwiseConv2d, validate,
                                                       prepare, execute};

}  // namespace hearth::ops
