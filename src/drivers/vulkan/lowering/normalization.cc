// SPDX-License-Identifier: Apache-2.0
// Normalisations of rows, groups and images.
#include <algorithm>
#include <array>
#include <utility>

#include "drivers/vulkan/lowering/lowering.h"
#include "drivers/vulkan/lowering/tables.h"
#include "ops/group_norm.h"
#include "ops/padding.h"
#include "ops/validation.h"

namespace hearth::vulkan {
namespace {

// The constant 0 of normalize.comp.
enum class NormKind : uint32_t { kLength, kMeanSquare, kMoments };

// What is normalised together, as normalize.comp has it: rows of three loops.
struct Rows {
  uint32_t count = 1;
  uint32_t inner = 1;  // rows that follow each other by `step`
  uint32_t step = 1;   // in elements
  uint32_t outerStep = 0;
  std::array<uint32_t, 3> sizes = {1, 1, 1};
  std::array<uint32_t, 3> steps = {0, 0, 1};
};

// How an element's channel follows from its place.
struct Channels {
  uint32_t inner = 1;
  uint32_t count = 1;
};

// The factor and the summand of a normalised element: an input with one for each channel, or a
// number for all.
struct Affine {
  TensorId tensor = kNoTensor;
  float number = 0.0f;
};

Status addNormalization(LoweringContext& context, NormKind kind, const Rows& rows,
                        const Channels& channels, float epsilon, const Affine& scale,
                        const Affine& offset) {
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(context.input(0).type()));
  const TensorId input = context.inputTensor(0);
  const auto bound = [&](const Affine& affine) {
    return affine.tensor == kNoTensor ? input : affine.tensor;
  };
  Dispatch dispatch;
  dispatch.shader = "normalize." + suffix;
  dispatch.constant = std::to_underlying(kind);
  dispatch.bindings = {{input}, {bound(scale)}, {bound(offset)}, {context.outputTensor(0), true}};
  const auto [outer, middle, last] = rows.sizes;
  dispatch.parameters = {rows.count,
                         rows.inner,
                         rows.step,
                         rows.outerStep,
                         outer * middle * last,
                         middle,
                         last,
                         rows.steps[0],
                         rows.steps[1],
                         rows.steps[2],
                         channels.inner,
                         channels.count,
                         scale.tensor == kNoTensor ? 0u : 1u,
                         offset.tensor == kNoTensor ? 0u : 1u,
                         bitsOf(epsilon),
                         bitsOf(scale.number),
                         bitsOf(offset.number)};
  return context.addRows(std::move(dispatch), rows.count);
}

// The rows along an axis.
struct AxisRows {
  uint32_t count = 0;
  uint32_t length = 0;
  uint32_t step = 1;  // from one of a row to the next; as many rows lie side by side
};

AxisRows rowsAlong(const ops::Tensor& tensor, size_t axis) {
  AxisRows rows;
  rows.length = tensor.dimensions[axis];
  for (size_t i = axis + 1; i < tensor.rank(); ++i) rows.step *= tensor.dimensions[i];
  rows.count = static_cast<uint32_t>(tensor.elementCount() / rows.length);
  return rows;
}

Rows loopsOf(const AxisRows& rows) {
  return {rows.count,          rows.step,        1, rows.step * rows.length,
          {1, 1, rows.length}, {0, 0, rows.step}};
}

Status addQuantizedLength(LoweringContext& context, const AxisRows& rows) {
  const ops::Tensor& input = context.input(0);
  const graph::Operand& output = *context.output(0).operand;
  // The sum of squares has to fit into 32 bits; and no row but that of zeros is shorter than the
  // length that the operation divides by at least.
  constexpr uint32_t kMostElements = 66051;
  constexpr float kLeastScale = 1e-6f;
  if (rows.length > kMostElements || input.operand->scale < kLeastScale)
    return fail(ErrorCode::kUnsupported,
                "The GPU driver has no {} of {} in rows of {} elements of the scale {}.",
                graph::nameOf(context.operation().operation->type), graph::nameOf(input.type()),
                rows.length, input.operand->scale);
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(input.type()));
  Dispatch dispatch;
  dispatch.shader = "length_quantized." + suffix;
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}};
  const int32_t lowest = lowestStored(output.type);
  dispatch.parameters = {rows.count,
                         rows.length,
                         rows.step,
                         bitsOf(input.operand->zeroPoint),
                         bitsOf(output.zeroPoint),
                         bitsOf(lowest),
                         bitsOf(lowest + 255)};
  return context.addRows(std::move(dispatch), rows.count);
}

}  // namespace

Status lowerL2Normalization(LoweringContext& context) {
  constexpr float kLeastLength = 1e-6f;
  HEARTH_ASSIGN(const int32_t value, context.operation().scalar<int32_t>(1, -1));
  HEARTH_ASSIGN(const size_t axis,
                ops::resolveAxis(context.operation(), value, context.input(0).rank()));
  const AxisRows rows = rowsAlong(context.input(0), axis);
  if (graph::isQuantized(context.input(0).type())) return addQuantizedLength(context, rows);
  return addNormalization(context, NormKind::kLength, loopsOf(rows), {}, kLeastLength,
                          {kNoTensor, 1.0f}, {});
}

Status lowerRmsNorm(LoweringContext& context) {
  HEARTH_ASSIGN(const float epsilon, ops::floatScalar(context.operation(), 2));
  const AxisRows rows = rowsAlong(context.input(0), context.input(0).rank() - 1);
  return addNormalization(context, NormKind::kMeanSquare, loopsOf(rows), {1, rows.length}, epsilon,
                          {context.inputTensor(1), 1.0f}, {});
}

Status lowerGroupNorm(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::GroupNormParameters p, ops::parseGroupNorm(context.operation()));
  const auto inner = static_cast<uint32_t>(p.inner);
  const auto channels = static_cast<uint32_t>(p.channels());
  const auto groups = static_cast<uint32_t>(p.groups);
  const auto groupChannels = static_cast<uint32_t>(p.groupChannels);
  const auto outer = static_cast<uint32_t>(p.outer);
  const Rows rows = {static_cast<uint32_t>(p.batches) * groups,
                     groups,
                     groupChannels * inner,
                     outer * channels * inner,
                     {outer, groupChannels, inner},
                     {channels * inner, inner, 1}};
  return addNormalization(context, NormKind::kMoments, rows, {inner, channels}, p.epsilon,
                          {context.inputTensor(1), 1.0f}, {context.inputTensor(2), 0.0f});
}

Status lowerInstanceNormalization(LoweringContext& context) {
  HEARTH_ASSIGN(const float gamma, ops::floatScalar(context.operation(), 1));
  HEARTH_ASSIGN(const float beta, ops::floatScalar(context.operation(), 2));
  HEARTH_ASSIGN(const float epsilon, ops::floatScalar(context.operation(), 3));
  HEARTH_ASSIGN(const bool isNchw, context.operation().scalar<bool>(4));
  const ops::ImageShape image = ops::ImageShape::of(context.input(0).dimensions, isNchw);
  const uint32_t places = image.height * image.width;
  const uint32_t channels = image.channels;
  const Rows rows = {image.batches * channels, channels,       isNchw ? places : 1,
                     channels * places,        {1, 1, places}, {0, 0, isNchw ? 1 : channels}};
  return addNormalization(context, NormKind::kMoments, rows, {}, epsilon, {kNoTensor, gamma},
                          {kNoTensor, beta});
}

Status lowerLocalResponseNormalization(LoweringContext& context) {
  const ops::OperationContext& operation = context.operation();
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(context.input(0).type()));
  HEARTH_ASSIGN(const int32_t radius, operation.scalar<int32_t>(1));
  Dispatch dispatch;
  dispatch.shader = "response." + suffix;
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}};
  HEARTH_ASSIGN(const int32_t value, operation.scalar<int32_t>(5, -1));
  HEARTH_ASSIGN(const size_t axis, ops::resolveAxis(operation, value, context.input(0).rank()));
  const AxisRows rows = rowsAlong(context.input(0), axis);
  const uint64_t count = context.output(0).elementCount();
  const auto reach = std::min(radius, static_cast<int32_t>(rows.length));
  dispatch.parameters = {static_cast<uint32_t>(count), rows.length, rows.step, bitsOf(reach)};
  for (const size_t index : {2, 3, 4}) {
    HEARTH_ASSIGN(const float number, ops::floatScalar(operation, index));
    dispatch.parameters.push_back(bitsOf(number));
  }
  return context.addRow(std::move(dispatch), count);
}

}  // namespace hearth::vulkan
