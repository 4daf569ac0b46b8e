// SPDX-License-Identifier: Apache-2.0
// Operations that move elements and do not look at them.
#include <algorithm>
#include <utility>

#include "drivers/vulkan/lowering/copies.h"
#include "drivers/vulkan/lowering/lowering.h"
#include "drivers/vulkan/lowering/tables.h"
#include "ops/concatenation.h"
#include "ops/pad.h"
#include "ops/padding.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/space_to_depth.h"
#include "ops/split.h"
#include "ops/transpose.h"

namespace hearth::vulkan {
namespace {

// The loops over a tensor of this shape that lies inside another one.
std::vector<CopyLoop> loopsOver(const graph::Dimensions& sizes,
                                const std::vector<int64_t>& inputSteps,
                                const std::vector<int64_t>& outputSteps) {
  std::vector<CopyLoop> loops;
  for (size_t i = 0; i < sizes.size(); ++i)
    loops.push_back({sizes[i], inputSteps[i], outputSteps[i]});
  return loops;
}

bool haveSameQuantization(const graph::Operand& a, const graph::Operand& b) {
  return a.type == b.type && a.scale == b.scale && a.zeroPoint == b.zeroPoint;
}

}  // namespace

Status lowerReshape(LoweringContext& context) {
  HEARTH_TRY(ops::parseReshape(context.operation()));
  context.alias();
  return {};
}

Status lowerConcatenation(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::ConcatenationParameters p, ops::parseConcatenation(context.operation()));
  const graph::Operand& output = *context.output(0).operand;
  const std::vector<int64_t> outputSteps = stepsOf(context.output(0).dimensions);
  int64_t first = 0;
  for (size_t i = 0; i < p.tensorCount; ++i) {
    const ops::Tensor& input = context.input(i);
    TensorId from = context.inputTensor(i);
    const bool isByte = graph::isQuantized(output.type) && graph::elementSize(output) == 1;
    if (isByte && !haveSameQuantization(*input.operand, output)) {
      const uint64_t count = input.elementCount();
      from = context.addTemporary(count);
      HEARTH_TRY(addByteMap(context, context.inputTensor(i), from, count,
                            ops::requantizedBytes(*input.operand, output)));
    }
    HEARTH_TRY(
        addCopy(context, graph::elementSize(output),
                {from, context.outputTensor(0),
                 loopsOver(input.dimensions, stepsOf(input.dimensions), outputSteps), 0, first}));
    first += input.dimensions[p.axis] * outputSteps[p.axis];
  }
  return {};
}

Status lowerPad(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::PadParameters p, ops::parsePad(context.operation()));
  const ops::Tensor& input = context.input(0);
  const size_t bytes = graph::elementSize(*input.operand);
  // One element that is copied everywhere, before the input is.
  const TensorId value =
      context.addConstant(bytes, [value = p.value, bytes]() -> Result<std::vector<uint8_t>> {
        return std::vector<uint8_t>(value.begin(), value.begin() + static_cast<long>(bytes));
      });
  const auto count = static_cast<uint32_t>(context.output(0).elementCount());
  HEARTH_TRY(addCopy(context, bytes, {value, context.outputTensor(0), {{count, 0, 1}}}));
  const std::vector<int64_t> outputSteps = stepsOf(context.output(0).dimensions);
  int64_t first = 0;
  for (size_t i = 0; i < outputSteps.size(); ++i) first += p.before[i] * outputSteps[i];
  return addCopy(context, bytes,
                 {context.inputTensor(0), context.outputTensor(0),
                  loopsOver(input.dimensions, stepsOf(input.dimensions), outputSteps), 0, first});
}

Status lowerSlice(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::SliceParameters p,
                context.operation().operation->type == ops::OperationType::kSlice
                    ? ops::parseSlice(context.operation())
                    : ops::parseStridedSlice(context.operation()));
  const ops::Tensor& input = context.input(0);
  const std::vector<int64_t> inputSteps = stepsOf(input.dimensions);
  // The output may lack dimensions of which one element is taken.
  graph::Dimensions taken;
  for (const ops::SliceRange& range : p.ranges) taken.push_back(static_cast<uint32_t>(range.size));
  const std::vector<int64_t> outputSteps = stepsOf(taken);
  Copy copy{context.inputTensor(0), context.outputTensor(0)};
  for (size_t i = 0; i < taken.size(); ++i) {
    copy.loops.push_back({taken[i], inputSteps[i] * p.ranges[i].stride, outputSteps[i]});
    copy.inputFirst += inputSteps[i] * p.ranges[i].begin;
  }
  return addCopy(context, graph::elementSize(*input.operand), std::move(copy));
}

// Blocks of the large image are channels of the small one, at the place of the block.
Status lowerSpaceToDepth(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::SpaceToDepthParameters p, ops::parseSpaceToDepth(context.operation()));
  const bool isToDepth = context.operation().operation->type == ops::OperationType::kSpaceToDepth;
  const auto input = ops::ImageShape::of(context.input(0).dimensions, p.isNchw);
  const auto output = ops::ImageShape::of(p.dimensions, p.isNchw);
  const ops::ImageShape& small = isToDepth ? output : input;
  const ops::ImageLayout space(isToDepth ? input : output, p.isNchw);
  const ops::ImageLayout depth(small, p.isNchw);
  const uint32_t channels = (isToDepth ? input : output).channels;
  Copy copy{context.inputTensor(0), context.outputTensor(0)};
  const auto add = [&](uint32_t size, size_t spaceStep, size_t depthStep) {
    const auto first = static_cast<int64_t>(isToDepth ? spaceStep : depthStep);
    const auto second = static_cast<int64_t>(isToDepth ? depthStep : spaceStep);
    copy.loops.push_back({size, first, second});
  };
  add(small.batches, space.batchStride, depth.batchStride);
  add(small.height, p.blockSize * space.rowStride, depth.rowStride);
  add(p.blockSize, space.rowStride, size_t{p.blockSize} * channels * depth.channelStride);
  add(small.width, p.blockSize * space.columnStride, depth.columnStride);
  add(p.blockSize, space.columnStride, channels * depth.channelStride);
  add(channels, space.channelStride, depth.channelStride);
  return addCopy(context, graph::elementSize(*context.input(0).operand), std::move(copy));
}

Status lowerSplit(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::SplitParameters p, ops::parseSplit(context.operation()));
  const ops::Tensor& input = context.input(0);
  const std::vector<int64_t> inputSteps = stepsOf(input.dimensions);
  const std::vector<int64_t> outputSteps = stepsOf(p.dimensions);
  for (size_t i = 0; i < p.count; ++i) {
    if (!context.operation().hasOutput(i)) continue;
    const auto first = static_cast<int64_t>(i) * p.dimensions[p.axis] * inputSteps[p.axis];
    HEARTH_TRY(addCopy(context, graph::elementSize(*input.operand),
                       {context.inputTensor(0), context.outputTensor(i),
                        loopsOver(p.dimensions, inputSteps, outputSteps), first, 0}));
  }
  return {};
}

Status lowerTranspose(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::TransposeParameters p, ops::parseTranspose(context.operation()));
  const ops::Tensor& input = context.input(0);
  const std::vector<int64_t> inputSteps = stepsOf(input.dimensions);
  std::vector<int64_t> permuted;
  for (const size_t from : p.permutation) permuted.push_back(inputSteps[from]);
  return addCopy(context, graph::elementSize(*input.operand),
                 {context.inputTensor(0), context.outputTensor(0),
                  loopsOver(p.dimensions, permuted, stepsOf(p.dimensions))});
}

}  // namespace hearth::vulkan
