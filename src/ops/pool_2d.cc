// SPDX-License-Identifier: Apache-2.0
// Pools. Inputs, after the data: implicit padding code or left, right, top, bottom; stride width
// and height; filter width and height; activation; layout.
#include "ops/pool_2d.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/vector_dispatch.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

struct Arguments {
  bool isImplicit;
  size_t strides;
  size_t filter;
  size_t activation;
  size_t layout;
};

constexpr Arguments kImplicitArguments = {true, 2, 4, 6, 7};
constexpr Arguments kExplicitArguments = {false, 5, 7, 9, 10};

const Arguments& argumentsOf(size_t count) {
  return count <= 8 ? kImplicitArguments : kExplicitArguments;
}

Status validateTypes(const graph::Subgraph& subgraph, const graph::Operation& operation,
                     TypeSet types) {
  const Signature signature(subgraph, operation);
  const Arguments& arguments = argumentsOf(signature.inputCount());
  HEARTH_TRY(signature.counts(arguments.layout, arguments.layout + 1, 1));
  HEARTH_TRY(signature.inputType(0, types));
  HEARTH_TRY(signature.outputTypeLike(0, 0));
  HEARTH_TRY(signature.outputQuantizationLike(0, 0));
  for (size_t i = 1; i < arguments.layout; ++i)
    HEARTH_TRY(signature.inputType(i, OperandType::kInt32));
  HEARTH_TRY(signature.optionalInputType(arguments.layout, OperandType::kBool));
  HEARTH_TRY(signature.inputRank(0, 4, 4));
  return signature.outputRank(0, 4, 4);
}

Status validatePool(const graph::Model&, const graph::Subgraph& subgraph,
                    const graph::Operation& operation) {
  return validateTypes(subgraph, operation, kFloatTensors | kQuant8Tensors);
}

Status validateL2Pool(const graph::Model&, const graph::Subgraph& subgraph,
                      const graph::Operation& operation) {
  return validateTypes(subgraph, operation, kFloatTensors);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Pool2dParameters p, parsePool2d(context));
  return context.setOutputDimensions(0, p.output.dimensions(p.isNchw));
}

// What a pool does with the elements of one window.
struct Average {
  double sum = 0.0;
  size_t count = 0;
  void add(float value) {
    sum += value;
    ++count;
  }
  float result() const { return static_cast<float>(sum / static_cast<double>(count)); }
};

struct Maximum {
  float highest = -std::numeric_limits<float>::infinity();
  void add(float value) {
    if (value > highest || std::isnan(value)) highest = value;
  }
  float result() const { return highest; }
};

struct RootMeanSquare {
  Average average;
  void add(float value) { average.add(value * value); }
  float result() const { return std::sqrt(average.result()); }
};

// Of all channels of a window, which lie side by side.
void addSquares(const float* pixel, double* sums, size_t channels) {
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t c = 0; c < channels; ++c) sums[c] += static_cast<double>(pixel[c] * pixel[c]);
  });
}

template <typename Pool>
Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Pool2dParameters p, parsePool2d(context));
  const Window2d& w = p.window;
  const ImageLayout inputLayout(p.input, p.isNchw);
  const ImageLayout outputLayout(p.output, p.isNchw);
  const ActivationRange range = activationRange(p.activation);
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  std::vector<double> squares;
  for (uint32_t b = 0; b < p.output.batches; ++b) {
    for (uint32_t row = 0; row < p.output.height; ++row) {
      const int64_t top = int64_t{row} * w.strideHeight - w.padding.top;
      const int64_t firstRow = std::max<int64_t>(top, 0);
      const int64_t lastRow = std::min<int64_t>(top + w.filterHeight, p.input.height);
      for (uint32_t column = 0; column < p.output.width; ++column) {
        const int64_t left = int64_t{column} * w.strideWidth - w.padding.left;
        const int64_t firstColumn = std::max<int64_t>(left, 0);
        const int64_t lastColumn = std::min<int64_t>(left + w.filterWidth, p.input.width);
        if constexpr (std::is_same_v<Pool, RootMeanSquare>) {
          if (inputLayout.channelStride == 1 && outputLayout.channelStride == 1) {
            squares.assign(p.output.channels, 0.0);
            for (int64_t y = firstRow; y < lastRow; ++y)
              for (int64_t x = firstColumn; x < lastColumn; ++x)
                addSquares(input.data() + inputLayout.offset(b, static_cast<size_t>(y),
                                                             static_cast<size_t>(x)),
                           squares.data(), p.output.channels);
            const double count =
                static_cast<double>((lastRow - firstRow) * (lastColumn - firstColumn));
            float* target = output.data() + outputLayout.offset(b, row, column);
            for (size_t c = 0; c < p.output.channels; ++c)
              target[c] = range.apply(std::sqrt(static_cast<float>(squares[c] / count)));
            continue;
          }
        }
        for (size_t c = 0; c < p.output.channels; ++c) {
          Pool pool;
          for (int64_t y = firstRow; y < lastRow; ++y) {
            for (int64_t x = firstColumn; x < lastColumn; ++x)
              pool.add(input[inputLayout.offset(b, static_cast<size_t>(y), static_cast<size_t>(x)) +
                             c * inputLayout.channelStride]);
          }
          output[outputLayout.offset(b, row, column) + c * outputLayout.channelStride] =
              range.apply(pool.result());
        }
      }
    }
  }
  output.store();
  return {};
}

}  // namespace

Result<Pool2dParameters> parsePool2d(const OperationContext& context) {
  const Arguments& arguments = argumentsOf(context.inputs.size());
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, 0, 4, 4));
  Pool2dParameters p;
  HEARTH_ASSIGN(p.isNchw, context.scalar<bool>(arguments.layout, false));
  HEARTH_ASSIGN(p.activation, parseActivation(context, arguments.activation));
  p.input = ImageShape::of(context.inputs[0].dimensions, p.isNchw);
  if (p.input.channels == 0)
    return fail(ErrorCode::kBadData, "The image of {} has no channels.", context.describe());
  HEARTH_ASSIGN(const int32_t filterWidth, context.scalar<int32_t>(arguments.filter));
  HEARTH_ASSIGN(const int32_t filterHeight, context.scalar<int32_t>(arguments.filter + 1));
  HEARTH_TRY(setFilterSize(context, filterHeight, filterWidth, &p.window));
  HEARTH_TRY(parseStrides(context, arguments.strides, 0, &p.window));
  HEARTH_TRY(parsePadding(context, 1, arguments.isImplicit, p.input, &p.window));
  const Padding2d& padding = p.window.padding;
  if (std::max(padding.top, padding.bottom) >= filterHeight ||
      std::max(padding.left, padding.right) >= filterWidth)
    return fail(ErrorCode::kBadData,
                "The padding of {} (top {}, bottom {}, left {}, right {}) must be smaller than its "
                "filter of {} by {}.",
                context.describe(), padding.top, padding.bottom, padding.left, padding.right,
                filterHeight, filterWidth);
  p.output = {p.input.batches, outputHeight(p.window, p.input.height),
              outputWidth(p.window, p.input.width), p.input.channels};
  return p;
}

const OperationDefinition kAveragePool2dOperation = {OperationType::kAveragePool2d, validatePool,
                                                     prepare, execute<Average>};
const OperationDefinition kL2Pool2dOperation = {OperationType::kL2Pool2d, validateL2Pool, prepare,
                                                execute<RootMeanSquare>};
const OperationDefinition kMaxPool2dOperation = {OperationType::kMaxPool2d, validatePool, prepare,
                                                 execute<Maximum>};

}  // namespace hearth::ops
