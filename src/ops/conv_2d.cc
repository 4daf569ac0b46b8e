// SPDX-License-Identifier: Apache-2.0
// CONV_2D and GROUPED_CONV_2D. Inputs, after data, filter and bias: implicit padding code or
// left, right, top, bottom; stride width and height; [groups]; activation; layout; [dilations].
#include "ops/conv_2d.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "ops/convolution.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

// Indices of the arguments in the form that a model uses.
struct Arguments {
  WindowArguments window;
  size_t groups;  // 0: there is no such argument
  size_t minimumCount;
  size_t maximumCount;
};

constexpr Arguments kImplicitArguments = {{true, 3, 4, 8, 6, 7}, 0, 7, 10};
constexpr Arguments kExplicitArguments = {{false, 3, 7, 11, 9, 10}, 0, 10, 13};
constexpr Arguments kImplicitGroupedArguments = {{true, 3, 4, 0, 7, 8}, 6, 8, 9};
constexpr Arguments kExplicitGroupedArguments = {{false, 3, 7, 0, 10, 11}, 9, 11, 12};

// Both forms may have the same number of arguments; then the type of input 7 tells them apart.
Arguments argumentsOf(size_t count, bool isInput7Bool) {
  return count == 7 || (count > 7 && isInput7Bool) ? kImplicitArguments : kExplicitArguments;
}

Arguments groupedArgumentsOf(size_t count) {
  return count <= 9 ? kImplicitGroupedArguments : kExplicitGroupedArguments;
}

Arguments argumentsOf(const OperationContext& context) {
  return argumentsOf(context.inputs.size(),
                     context.inputs.size() > 7 && context.inputs[7].type() == OperandType::kBool);
}

Status validateArguments(const Signature& signature, const Arguments& arguments) {
  HEARTH_TRY(signature.counts(arguments.minimumCount, arguments.maximumCount, 1));
  return validateConvolution(signature, 0, arguments.window.padding, arguments.window.layout);
}

Result<Conv2dParameters> parse(const OperationContext& context, const Arguments& arguments) {
  Conv2dParameters p;
  HEARTH_TRY(parseConvolutionWindow(context, arguments.window, &p));
  const Dimensions& filter = context.inputs[1].dimensions;
  HEARTH_TRY(parsePadding(context, arguments.window.padding, arguments.window.isImplicit, p.input,
                          &p.window));

  const uint32_t outputChannels = filter[0];
  p.groupInputChannels = filter[3];
  if (p.groupInputChannels == 0 || outputChannels == 0)
    return fail(ErrorCode::kBadData, "The filter of {} has the shape {}.", context.describe(),
                graph::describeDimensions(filter));
  if (arguments.groups != 0) {
    HEARTH_ASSIGN(const int32_t groups, context.scalar<int32_t>(arguments.groups));
    if (groups <= 0)
      return fail(ErrorCode::kBadData, "The number of groups of {} is {}, it must be positive.",
                  context.describe(), groups);
    p.groups = static_cast<uint32_t>(groups);
  } else {
    p.groups = std::max(p.input.channels / p.groupInputChannels, uint32_t{1});
  }
  if (uint64_t{p.groups} * p.groupInputChannels != p.input.channels ||
      outputChannels % p.groups != 0)
    return fail(ErrorCode::kBadData,
                "The filter {} of {} with {} groups does not fit {} input channels.",
                graph::describeDimensions(filter), context.describe(), p.groups, p.input.channels);
  p.groupOutputChannels = outputChannels / p.groups;
  HEARTH_TRY(checkBias(context, outputChannels));
  p.output = {p.input.batches, outputHeight(p.window, p.input.height),
              outputWidth(p.window, p.input.width), outputChannels};
  return p;
}

// Copies the input elements below one window position into a row in the filter's order.
template <typename T>
void gatherPatch(const Conv2dParameters& p, const ImageLayout& layout, const T* image, uint32_t row,
                 uint32_t column, uint32_t firstChannel, T* patch) {
  const Window2d& w = p.window;
  const int64_t top = int64_t{row} * w.strideHeight - w.padding.top;
  const int64_t left = int64_t{column} * w.strideWidth - w.padding.left;
  for (int64_t i = 0; i < w.filterHeight; ++i) {
    const int64_t y = top + i * w.dilationHeight;
    for (int64_t j = 0; j < w.filterWidth; ++j, patch += p.groupInputChannels) {
      const int64_t x = left + j * w.dilationWidth;
      if (y < 0 || y >= p.input.height || x < 0 || x >= p.input.width) {
        std::fill_n(patch, p.groupInputChannels, T{0});
        continue;
      }
      const T* source = image + layout.offset(0, static_cast<size_t>(y), static_cast<size_t>(x)) +
                        firstChannel * layout.channelStride;
      for (size_t c = 0; c < p.groupInputChannels; ++c) patch[c] = source[c * layout.channelStride];
    }
  }
}

Status computeConvolution(OperationContext& context, const Conv2dParameters& p) {
  const ImageLayout inputLayout(p.input, p.isNchw);
  const ImageLayout outputLayout(p.output, p.isNchw);
  const size_t rowSize =
      size_t(p.window.filterHeight) * size_t(p.window.filterWidth) * p.groupInputChannels;
  computeWithFilter(
      context, p.activation, [&]<typename T>(const T* input, const T* filter, const auto& store) {
        std::vector<T> patch(rowSize);
        for (uint32_t b = 0; b < p.output.batches; ++b) {
          const T* image = input + b * inputLayout.batchStride;
          for (uint32_t y = 0; y < p.output.height; ++y) {
            for (uint32_t x = 0; x < p.output.width; ++x) {
              const size_t base = outputLayout.offset(b, y, x);
              for (uint32_t group = 0; group < p.groups; ++group) {
                gatherPatch(p, inputLayout, image, y, x, group * p.groupInputChannels,
                            patch.data());
                for (uint32_t i = 0; i < p.groupOutputChannels; ++i) {
                  const size_t channel = size_t{group} * p.groupOutputChannels + i;
                  store(base + channel * outputLayout.channelStride, channel,
                        dotProduct(patch.data(), filter + channel * rowSize, rowSize));
                }
              }
            }
          }
        }
      });
  return {};
}

Status validateConv2d(const Signature& signature) {
  return validateArguments(signature, argumentsOf(signature.inputCount(),
                                                  signature.isInputOfType(7, OperandType::kBool)));
}

Status validateGroupedConv2d(const Signature& signature) {
  return validateArguments(signature, groupedArgumentsOf(signature.inputCount()));
}

template <Result<Conv2dParameters> (*parser)(const OperationContext&)>
Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Conv2dParameters parameters, parser(context));
  return context.setOutputDimensions(0, parameters.output.dimensions(parameters.isNchw));
}

template <Result<Conv2dParameters> (*parser)(const OperationContext&)>
Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Conv2dParameters parameters, parser(context));
  return computeConvolution(context, parameters);
}

}  // namespace

Result<Conv2dParameters> parseConv2d(const OperationContext& context) {
  return parse(context, argumentsOf(context));
}

Result<Conv2dParameters> parseGroupedConv2d(const OperationContext& context) {
  return parse(context, groupedArgumentsOf(context.inputs.size()));
}

std::optional<FixedConv2d> findFixedConv2d(const OperationContext& context) {
  const Arguments arguments = argumentsOf(context);
  const Dimensions& filter = context.inputs[1].dimensions;
  const Result<bool> isNchw = context.scalar<bool>(arguments.window.layout, false);
  FixedConv2d fixed{.activation = arguments.window.activation};
  Window2d& window = fixed.window;
  if (filter.size() != 4 || !isNchw || *isNchw ||
      !setFilterSize(context, filter[1], filter[2], &window) ||
      !parseStrides(context, arguments.window.strides, arguments.window.dilations, &window))
    return std::nullopt;
  // An image of one window stands for all sizes.
  const int64_t height = int64_t{window.filterHeight - 1} * window.dilationHeight + 1;
  const int64_t width = int64_t{window.filterWidth - 1} * window.dilationWidth + 1;
  if (std::max(height, width) > std::numeric_limits<int32_t>::max()) return std::nullopt;
  const ImageShape image{1, static_cast<uint32_t>(height), static_cast<uint32_t>(width), 1};
  if (!parsePadding(context, arguments.window.padding, arguments.window.isImplicit, image,
                    &window) ||
      (window.isSamePadding && ((window.filterHeight != 1 && window.strideHeight != 1) ||
                                (window.filterWidth != 1 && window.strideWidth != 1))))
    return std::nullopt;
  return fixed;
}

const OperationDefinition kConv2dOperation = {OperationType::kConv2d, validateConv2d,
                                              prepare<parseConv2d>, execute<parseConv2d>};
const OperationDefinition kGroupedConv2dOperation = {
    OperationType::kGroupedConv2d, validateGroupedConv2d, prepare<parseGroupedConv2d>,
    execute<parseGroupedConv2d>};

}  // namespace hearth::ops
