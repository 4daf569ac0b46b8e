// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV_2D. Inputs, after data, filter and bias: output shape and implicit padding code,
// or left, right, top, bottom; stride width and height; activation; layout.
#include "ops/transpose_conv_2d.h"

#include <limits>
#include <vector>

#include "ops/convolution.h"
#include "ops/registry.h"
#include "ops/symmetric16.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

constexpr size_t kOutputShapeArgument = 3;  // of the implicit form
constexpr WindowArguments kImplicitArguments = {true, 4, 5, 0, 7, 8};
constexpr WindowArguments kExplicitArguments = {false, 3, 7, 0, 9, 10};

const WindowArguments& argumentsOf(size_t count) {
  return count <= 9 ? kImplicitArguments : kExplicitArguments;
}

Status validate(const Signature& signature) {
  const WindowArguments& arguments = argumentsOf(signature.inputCount());
  HEARTH_TRY(signature.counts(arguments.layout, arguments.layout + 1, 1));
  if (arguments.isImplicit) {
    HEARTH_TRY(signature.inputTensor(kOutputShapeArgument, OperandType::kTensorInt32, 1, 1));
  }
  return validateConvolution(signature, 0, arguments.padding, arguments.layout);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const TransposeConv2dParameters p, parseTransposeConv2d(context));
  return context.setOutputDimensions(0, p.output.dimensions(p.isNchw));
}

// Sum over the window positions that cover output row `row` and column `column`.
template <typename T>
typename Accumulator<T>::Type outputSum(const TransposeConv2dParameters& p, const T* image,
                                        const ImageLayout& layout, const T* filter, int64_t row,
                                        int64_t column) {
  const Window2d& w = p.window;
  typename Accumulator<T>::Type sum = 0;
  for (int64_t i = 0; i < w.filterHeight; ++i) {
    const int64_t top = row + w.padding.top - i;
    if (top < 0 || top % w.strideHeight != 0 || top / w.strideHeight >= p.input.height) continue;
    for (int64_t j = 0; j < w.filterWidth; ++j) {
      const int64_t left = column + w.padding.left - j;
      if (left < 0 || left % w.strideWidth != 0 || left / w.strideWidth >= p.input.width) continue;
      const T* pixel = image + layout.offset(0, static_cast<size_t>(top / w.strideHeight),
                                             static_cast<size_t>(left / w.strideWidth));
      const T* tap = filter + static_cast<size_t>(i * w.filterWidth + j) * p.input.channels;
      for (size_t c = 0; c < p.input.channels; ++c)
        sum += static_cast<typename Accumulator<T>::Type>(pixel[c * layout.channelStride] * tap[c]);
    }
  }
  return sum;
}

// One line of the output, for 16-bit activations.
void computeSymmetric16(const TransposeConv2dParameters& p, const int16_t* image,
                        const int8_t* filter, const Symmetric16Output& output, int64_t row,
                        int64_t* sums, int16_t* target) {
  const Symmetric16Output* const steps = &output;
  base::onWidestVectors([=, w = p.window, channels = size_t{p.output.channels},
                         inputs = size_t{p.input.channels}, height = p.input.height,
                         width = p.input.width, columns = p.output.width]() HEARTH_INLINE {
    const size_t filterSize =
        static_cast<size_t>(w.filterHeight) * static_cast<size_t>(w.filterWidth) * inputs;
    for (uint32_t column = 0; column < columns; ++column) {
      for (size_t c = 0; c < channels; ++c) sums[c] = 0;
      for (int64_t i = 0; i < w.filterHeight; ++i) {
        const int64_t top = row + w.padding.top - i;
        if (top < 0 || top % w.strideHeight != 0 || top / w.strideHeight >= height) continue;
        for (int64_t j = 0; j < w.filterWidth; ++j) {
          const int64_t left = int64_t{column} + w.padding.left - j;
          if (left < 0 || left % w.strideWidth != 0 || left / w.strideWidth >= width) continue;
          const int16_t* const pixel =
              image +
              static_cast<size_t>(top / w.strideHeight * width + left / w.strideWidth) * inputs;
          const int8_t* tap = filter + static_cast<size_t>(i * w.filterWidth + j) * inputs;
          for (size_t c = 0; c < channels; ++c, tap += filterSize) {
            int32_t sum = 0;
            for (size_t k = 0; k < inputs; ++k) sum += int32_t{pixel[k]} * int32_t{tap[k]};
            sums[c] += sum;
          }
        }
      }
      steps->store(sums, target + column * channels);
    }
  });
}

void executeSymmetric16(const OperationContext& context, const TransposeConv2dParameters& p) {
  const size_t channels = p.output.channels;
  const Symmetric16Output output(context, p.activation, channels);
  const auto* const input = context.inputs[0].as<int16_t>();
  const auto* const filter = context.inputs[1].as<int8_t>();
  auto* const target = context.outputs[0].as<int16_t>();
  const uint64_t lineSize = uint64_t{p.output.width} * channels;
  const uint64_t imageSize = uint64_t{p.input.height} * p.input.width * p.input.channels;
  threads::forRanges(context.threadPool, uint64_t{p.output.batches} * p.output.height,
                     threads::grainOf(lineSize * p.input.channels),
                     [&](uint64_t begin, uint64_t end) {
                       std::vector<int64_t> sums(channels);
                       for (uint64_t line = begin; line < end; ++line)
                         computeSymmetric16(p, input + line / p.output.height * imageSize, filter,
                                            output, static_cast<int64_t>(line % p.output.height),
                                            sums.data(), target + line * lineSize);
                     });
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const TransposeConv2dParameters p, parseTransposeConv2d(context));
  if (!p.isNchw && isSymmetric16Layer(context, p.input.channels)) {
    executeSymmetric16(context, p);
    return {};
  }
  const ImageLayout inputLayout(p.input, p.isNchw);
  const ImageLayout outputLayout(p.output, p.isNchw);
  const size_t filterSize =
      size_t(p.window.filterHeight) * size_t(p.window.filterWidth) * p.input.channels;
  computeWithFilter(
      context, p.activation, [&]<typename T>(const T* input, const T* filter, const auto& store) {
        for (uint32_t b = 0; b < p.output.batches; ++b) {
          const T* image = input + b * inputLayout.batchStride;
          for (uint32_t y = 0; y < p.output.height; ++y) {
            for (uint32_t x = 0; x < p.output.width; ++x) {
              const size_t base = outputLayout.offset(b, y, x);
              for (size_t c = 0; c < p.output.channels; ++c)
                store(base + c * outputLayout.channelStride, c,
                      outputSum(p, image, inputLayout, filter + c * filterSize, y, x));
            }
          }
        }
      });
  return {};
}

// The size of the output image that the model requests with implicit padding.
Result<ImageShape> requestedOutput(const OperationContext& context, bool isNchw) {
  HEARTH_ASSIGN(const std::vector<int64_t> shape, context.intVector(kOutputShapeArgument));
  Dimensions dimensions;
  for (int64_t size : shape) {
    if (size < 0 || size > std::numeric_limits<int32_t>::max()) break;
    dimensions.push_back(static_cast<uint32_t>(size));
  }
  if (shape.size() != 4 || dimensions.size() != 4)
    return fail(ErrorCode::kBadData, "The output shape (input {}) of {} is not four sizes.",
                kOutputShapeArgument, context.describe());
  return ImageShape::of(dimensions, isNchw);
}

// Explicit padding determines the output's size.
Result<uint32_t> outputSize(const OperationContext& context, size_t firstPadding, uint32_t input,
                            int32_t filter, int32_t stride) {
  HEARTH_ASSIGN(const int32_t head, context.scalar<int32_t>(firstPadding));
  HEARTH_ASSIGN(const int32_t tail, context.scalar<int32_t>(firstPadding + 1));
  const int64_t size = (int64_t{input} - 1) * stride + filter - head - tail;
  if (size <= 0 || size > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kBadData, "The output of {} would have {} rows or columns.",
                context.describe(), size);
  return static_cast<uint32_t>(size);
}

}  // namespace

Result<TransposeConv2dParameters> parseTransposeConv2d(const OperationContext& context) {
  const WindowArguments& arguments = argumentsOf(context.inputs.size());
  TransposeConv2dParameters p;
  HEARTH_TRY(parseConvolutionWindow(context, arguments, &p));
  Window2d& window = p.window;
  const Dimensions& filter = context.inputs[1].dimensions;
  if (filter[0] == 0 || filter[3] == 0 || filter[3] != p.input.channels)
    return fail(ErrorCode::kBadData, "The filter {} of {} does not fit {} input channels.",
                graph::describeDimensions(filter), context.describe(), p.input.channels);
  HEARTH_TRY(checkBias(context, filter[0]));
  if (arguments.isImplicit) {
    HEARTH_ASSIGN(p.output, requestedOutput(context, p.isNchw));
  } else {
    p.output = {p.input.batches, 0, 0, filter[0]};
    HEARTH_ASSIGN(p.output.width, outputSize(context, arguments.padding, p.input.width,
                                             window.filterWidth, window.strideWidth));
    HEARTH_ASSIGN(p.output.height, outputSize(context, arguments.padding + 2, p.input.height,
                                              window.filterHeight, window.strideHeight));
  }
  HEARTH_TRY(parsePadding(context, arguments.padding, arguments.isImplicit, p.output, &window));
  if (p.output.batches != p.input.batches || p.output.channels != filter[0] ||
      outputHeight(window, p.output.height) != p.input.height ||
      outputWidth(window, p.output.width) != p.input.width)
    return fail(
        ErrorCode::kBadData, "The output shape {} of {} does not fit its input {} and filter {}.",
        graph::describeDimensions(p.output.dimensions(p.isNchw)), context.describe(),
        graph::describeDimensions(context.inputs[0].dimensions), graph::describeDimensions(filter));
  const auto rest = [](int64_t output, int64_t head, int64_t tail, int64_t filterSize,
                       int64_t stride) {
    return static_cast<uint32_t>((output + head + tail - filterSize) % stride);
  };
  p.adjustmentHeight = rest(p.output.height, window.padding.top, window.padding.bottom,
                            window.filterHeight, window.strideHeight);
  p.adjustmentWidth = rest(p.output.width, window.padding.left, window.padding.right,
                           window.filterWidth, window.strideWidth);
  return p;
}

const OperationDefinition kTransposeConv2dOperation = {OperationType::kTransposeConv2d, validate,
                                                       prepare, execute};

}  // namespace hearth::ops
