// SPDX-License-Identifier: Apache-2.0
// CONV_3D of the extension. Inputs: data [n, depth, height, width, channels], filter [depth,
// height, width, channels, outputs], bias (may be omitted), padding code, strides and dilations
// (INT32, each as depth, height, width), activation.
#include <array>
#include <optional>

#include "base/vector_dispatch.h"
#include "ops/activation.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kData, kFilter, kBias, kPadding, kStrides, kDilations = 7, kActivation = 10 };
constexpr size_t kInputCount = 11;
constexpr int32_t kPaddingSame = 1;
constexpr int32_t kPaddingValid = 2;

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(kInputCount, 1));
  HEARTH_TRY(signature.inputType(kData, kFloatTensors));
  HEARTH_TRY(signature.inputTypeLike(kFilter, kData));
  HEARTH_TRY(signature.optionalInputTypeLike(kBias, kData));
  for (const size_t i : {kData, kFilter}) HEARTH_TRY(signature.inputRank(i, 5, 5));
  HEARTH_TRY(signature.inputRank(kBias, 1, 1));
  for (size_t i = kPadding; i < kInputCount; ++i)
    HEARTH_TRY(signature.inputType(i, OperandType::kInt32));
  return signature.outputTypeLike(0, kData);
}

// One of the three dimensions in which the filter moves.
struct Extent {
  int64_t input = 0;
  int64_t filter = 0;
  int64_t output = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;  // zeros of padding in front
};

struct Parameters {
  std::array<Extent, 3> extents;
  size_t batches = 0;
  size_t inputs = 0;
  size_t outputs = 0;
  FusedActivation activation = FusedActivation::kNone;
};

Result<int64_t> positive(const OperationContext& context, size_t index) {
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(index));
  if (value > 0) return value;
  return fail(ErrorCode::kBadData, "Input {} of {} is {}, it must be positive.", index,
              context.describe(), value);
}

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  for (const size_t i : {kData, kFilter}) HEARTH_TRY(requireRank(context, i, 5, 5));
  const Dimensions& data = context.inputs[kData].dimensions;
  const Dimensions& filter = context.inputs[kFilter].dimensions;
  Parameters p;
  p.batches = data[0];
  p.inputs = data[4];
  p.outputs = filter[4];
  HEARTH_ASSIGN(p.activation, parseActivation(context, kActivation));
  HEARTH_ASSIGN(const int32_t padding, context.scalar<int32_t>(kPadding));
  if (padding != kPaddingSame && padding != kPaddingValid)
    return fail(ErrorCode::kBadData, "The padding of {} is {}, it must be 1 or 2.",
                context.describe(), padding);
  if (filter[3] == 0 || filter[4] == 0 || filter[3] != data[4] ||
      (context.hasInput(kBias) && context.inputs[kBias].dimensions != Dimensions{filter[4]}))
    return fail(ErrorCode::kBadData, "The filter {} and bias of {} do not fit its input {}.",
                graph::describeDimensions(filter), context.describe(),
                graph::describeDimensions(data));
  for (size_t i = 0; i < 3; ++i) {
    Extent& extent = p.extents[i];
    extent.input = data[i + 1];
    extent.filter = filter[i];
    HEARTH_ASSIGN(extent.stride, positive(context, kStrides + i));
    HEARTH_ASSIGN(extent.dilation, positive(context, kDilations + i));
    const int64_t reach = extent.dilation * (extent.filter - 1) + 1;
    if (extent.filter == 0 || (padding == kPaddingValid && reach > extent.input))
      return fail(ErrorCode::kBadData, "The filter {} of {} is larger than its input {}.",
                  graph::describeDimensions(filter), context.describe(),
                  graph::describeDimensions(data));
    const int64_t positions = padding == kPaddingSame ? extent.input : extent.input - reach + 1;
    extent.output = (positions + extent.stride - 1) / extent.stride;
    if (padding == kPaddingSame)
      extent.before =
          std::max<int64_t>((extent.output - 1) * extent.stride + reach - extent.input, 0) / 2;
  }
  return p;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters p, parse(context));
  Dimensions dimensions = {context.inputs[kData].dimensions[0]};
  for (const Extent& extent : p.extents) {
    HEARTH_ASSIGN(const uint32_t size, toDimension(context, extent.output));
    dimensions.push_back(size);
  }
  dimensions.push_back(context.inputs[kFilter].dimensions[4]);
  return context.setOutputDimensions(0, std::move(dimensions));
}

// Adds one filter tap, [inputs, outputs], times one input pixel to the sums.
void addTap(const float* pixel, const float* tap, size_t inputs, std::vector<float>* sums) {
  float* target = sums->data();
  const size_t count = sums->size();
  base::onWidestVectors([=]() HEARTH_INLINE {
    // Some outputs at a time, whose sums stay in registers.
    constexpr size_t kOutputs = 16;
    size_t first = 0;
    for (; first + kOutputs <= count; first += kOutputs) {
      float values[kOutputs];
      for (size_t i = 0; i < kOutputs; ++i) values[i] = target[first + i];
      for (size_t c = 0; c < inputs; ++c)
        for (size_t i = 0; i < kOutputs; ++i) values[i] += pixel[c] * tap[c * count + first + i];
      for (size_t i = 0; i < kOutputs; ++i) target[first + i] = values[i];
    }
    for (size_t c = 0; c < inputs; ++c)
      for (size_t i = first; i < count; ++i) target[i] += pixel[c] * tap[c * count + i];
  });
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters p, parse(context));
  const RealInput data(context.inputs[kData]);
  const RealInput filter(context.inputs[kFilter]);
  std::vector<float> bias(p.outputs, 0.0f);
  if (context.hasInput(kBias)) {
    const RealInput given(context.inputs[kBias]);
    bias.assign(given.begin(), given.end());
  }
  RealOutput output(context.outputs[0]);
  const ActivationRange range = activationRange(p.activation);
  const auto& [depth, height, width] = p.extents;
  size_t at = 0;
  std::vector<float> sums;
  // The input position of tap k at output position i; outside it is padding.
  const auto place = [](const Extent& extent, int64_t i, int64_t k) {
    const int64_t position = i * extent.stride - extent.before + k * extent.dilation;
    return position >= 0 && position < extent.input ? position : int64_t{-1};
  };
  for (size_t b = 0; b < p.batches; ++b)
    for (int64_t z = 0; z < depth.output; ++z)
      for (int64_t y = 0; y < height.output; ++y)
        for (int64_t x = 0; x < width.output; ++x) {
          sums = bias;
          for (int64_t kz = 0; kz < depth.filter; ++kz)
            for (int64_t ky = 0; ky < height.filter; ++ky)
              for (int64_t kx = 0; kx < width.filter; ++kx) {
                const int64_t iz = place(depth, z, kz);
                const int64_t iy = place(height, y, ky);
                const int64_t ix = place(width, x, kx);
                if (iz < 0 || iy < 0 || ix < 0) continue;
                const size_t pixel = static_cast<size_t>(
                    ((static_cast<int64_t>(b) * depth.input + iz) * height.input + iy) *
                        width.input +
                    ix);
                const size_t tap =
                    static_cast<size_t>((kz * height.filter + ky) * width.filter + kx);
                addTap(data.data() + pixel * p.inputs, filter.data() + tap * p.inputs * p.outputs,
                       p.inputs, &sums);
              }
          for (const float sum : sums) output[at++] = range.apply(sum);
        }
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kConv3dOperation = {OperationType::kConv3d, validate, prepare, execute};

}  // namespace hearth::ops
