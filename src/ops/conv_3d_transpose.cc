// SPDX-License-Identifier: Apache-2.0
// CONV_3D_TRANSPOSE of the extension: each element of the data adds the filter, times itself, to a
// window of the output. Inputs: data [n, depth, height, width, channels], filter [depth, height,
// width, outputs, channels], bias (may be omitted), padding code, strides and dilations (INT32,
// each as depth, height, width), activation, the output's shape (5 integers). A CONV_3D with the
// same arguments goes from the output's size to the data's.
#include <algorithm>
#include <span>
#include <vector>

#include "ops/activation.h"
#include "ops/conv_3d_extents.h"
#include "ops/convolution.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/real_values.h"
#include "ops/recurrent_activation.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kData, kFilter, kBias, kShape = kConv3dActivation + 1 };

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kShape + 1, 1));
  HEARTH_TRY(validateConv3d(signature));
  HEARTH_TRY(signature.inputType(kShape, kIndexTensors));
  return signature.inputRank(kShape, 1, 1);
}

struct Parameters {
  Extents extents;  // `input` is the output's size, `output` the data's
  Dimensions shape;
  size_t inputs = 0, outputs = 0;
  FusedActivation activation = FusedActivation::kNone;
};

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  for (const size_t i : {kData, kFilter}) HEARTH_TRY(requireRank(context, i, 5, 5));
  const Dimensions& data = context.inputs[kData].dimensions;
  const Dimensions& filter = context.inputs[kFilter].dimensions;
  Parameters p;
  p.inputs = filter[4];
  p.outputs = filter[3];
  HEARTH_ASSIGN(p.activation, parseActivation(context, kConv3dActivation));
  HEARTH_ASSIGN(p.shape, dimensionsArgument(context, kShape));
  if (p.inputs == 0 || p.outputs == 0 || data[4] != p.inputs || p.shape.size() != 5 ||
      p.shape[0] != data[0] || p.shape[4] != p.outputs ||
      (context.hasInput(kBias) && context.inputs[kBias].dimensions != Dimensions{filter[3]}))
    return fail(ErrorCode::kBadData,
                "The filter {}, bias and output {} of {} do not fit its input {}.",
                graph::describeDimensions(filter), graph::describeDimensions(p.shape),
                context.describe(), graph::describeDimensions(data));
  HEARTH_ASSIGN(p.extents, parseExtents(context, std::span(p.shape).subspan<1, 3>(),
                                        std::span(filter).first<3>()));
  for (size_t i = 0; i < 3; ++i)
    if (p.extents[i].output != data[i + 1])
      return fail(ErrorCode::kBadData,
                  "{} makes {} of {}, whose convolution has {} in dimension {}.",
                  context.describe(), graph::describeDimensions(p.shape),
                  graph::describeDimensions(data), p.extents[i].output, i + 1);
  return p;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(Parameters p, parse(context));
  return context.setOutputDimensions(0, std::move(p.shape));
}

// Computes one row of the output. `line` counts the rows of all planes and batch elements.
void computeLine(const Parameters& p, const float* data, const float* filter, const float* bias,
                 uint64_t line, float* target) {
  const auto& [depth, height, width] = p.extents;
  const auto y = static_cast<int64_t>(line % p.shape[2]);
  const auto z = static_cast<int64_t>(line / p.shape[2] % p.shape[1]);
  const uint64_t batch = line / p.shape[2] / p.shape[1];
  for (int64_t x = 0; x < width.input; ++x) {
    if (bias != nullptr)
      std::copy_n(bias, p.outputs, target + static_cast<size_t>(x) * p.outputs);
    else
      std::fill_n(target + static_cast<size_t>(x) * p.outputs, p.outputs, 0.0f);
  }
  const float* weights = filter;
  for (int64_t kz = 0; kz < depth.filter; ++kz) {
    const int64_t iz = depth.positionAbove(z, kz);
    for (int64_t ky = 0; ky < height.filter; ++ky) {
      const int64_t iy = height.positionAbove(y, ky);
      for (int64_t kx = 0; kx < width.filter; ++kx, weights += p.outputs * p.inputs) {
        if (iz < 0 || iy < 0) continue;
        const uint64_t row =
            (batch * static_cast<uint64_t>(depth.output) + static_cast<uint64_t>(iz)) *
                static_cast<uint64_t>(height.output) +
            static_cast<uint64_t>(iy);
        for (int64_t x = 0; x < width.input; ++x) {
          const int64_t ix = width.positionAbove(x, kx);
          if (ix < 0) continue;
          const uint64_t pixel =
              row * static_cast<uint64_t>(width.output) + static_cast<uint64_t>(ix);
          addProduct(weights, p.outputs, p.inputs, data + pixel * p.inputs,
                     target + static_cast<size_t>(x) * p.outputs);
        }
      }
    }
  }
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters p, parse(context));
  if (context.outputs[0].elementCount() == 0) return {};
  const RealInput data(context.inputs[kData]);
  const RealInput filter(context.inputs[kFilter]);
  const std::vector<float> bias = realBias(context);
  RealOutput output(context.outputs[0]);
  const ActivationRange range = activationRange(p.activation);
  const size_t lineSize = p.shape[3] * p.outputs;
  threads::forRanges(context.threadPool, uint64_t{p.shape[0]} * p.shape[1] * p.shape[2],
                     threads::grainOf(p.shape[3] * filter.size()),
                     [&](uint64_t begin, uint64_t end) {
                       for (uint64_t line = begin; line < end; ++line) {
                         float* target = output.data() + line * lineSize;
                         computeLine(p, data.data(), filter.data(),
                                     bias.empty() ? nullptr : bias.data(), line, target);
                         for (size_t i = 0; i < lineSize; ++i)
                           target[i] = std::clamp(target[i], range.lowest, range.highest);
                       }
                     });
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kConv3dTransposeOperation = {OperationType::kConv3dTranspose, validate,
                                                       prepare, execute};

}  // namespace hearth::ops
