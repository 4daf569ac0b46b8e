// SPDX-License-Identifier: Apache-2.0
// Operations that move elements and do not look at them.
#include <algorithm>
#include <utility>

#include "drivers/vulkan/lowering/copies.h"
#include "drivers/vulkan/lowering/lowering.h"
#include "drivers/vulkan/lowering/tables.h"
#include "ops/concatenation.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/split.h"
#include "ops/transpose.h"
#include "ops/validation.h"

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

// [groups, size] becomes [size, groups].
Status lowerChannelShuffle(LoweringContext& context) {
  const ops::Tensor& input = context.input(0);
  HEARTH_ASSIGN(const int32_t groups, context.operation().scalar<int32_t>(1));
  HEARTH_ASSIGN(const int32_t value, context.operation().scalar<int32_t>(2));
  HEARTH_ASSIGN(const size_t axis, ops::resolveAxis(context.operation(), value, input.rank()));
  const std::vector<int64_t> steps = stepsOf(input.dimensions);
  Copy copy{context.inputTensor(0), context.outputTensor(0)};
  for (size_t i = 0; i < input.rank(); ++i) {
    if (i != axis) {
      copy.loops.push_back({input.dimensions[i], steps[i], steps[i]});
      continue;
    }
    const uint32_t size = input.dimensions[i] / static_cast<uint32_t>(groups);
    copy.loops.push_back({static_cast<uint32_t>(groups), steps[i] * size, steps[i]});
    copy.loops.push_back({size, steps[i], steps[i] * groups});
  }
  return addCopy(context, graph::elementSize(*input.operand), std::move(copy));
}

Status lowerReverse(LoweringContext& context) {
  const ops::Tensor& input = context.input(0);
  HEARTH_ASSIGN(const std::vector<int64_t> axes, context.operation().intVector(1));
  const std::vector<int64_t> steps = stepsOf(input.dimensions);
  std::vector<int64_t> inputSteps = steps;
  Copy copy{context.inputTensor(0), context.outputTensor(0)};
  for (const int64_t value : axes) {
    HEARTH_ASSIGN(const size_t axis, ops::resolveAxis(context.operation(), value, input.rank()));
    if (inputSteps[axis] < 0) continue;
    inputSteps[axis] = -steps[axis];
    copy.inputFirst += steps[axis] * (int64_t{input.dimensions[axis]} - 1);
  }
  copy.loops = loopsOver(input.dimensions, inputSteps, steps);
  return addCopy(context, graph::elementSize(*input.operand), std::move(copy));
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
  HEARTH_TRY(addFill(context, {p.value.begin(), p.value.begin() + static_cast<long>(bytes)}));
  const std::vector<int64_t> outputSteps = stepsOf(context.output(0).dimensions);
  int64_t first = 0;
  for (size_t i = 0; i < outputSteps.size(); ++i) first += p.before[i] * outputSteps[i];
  return addCopy(context, bytes,
                 {context.inputTensor(0), context.outputTensor(0),
                  loopsOver(input.dimensions, stepsOf(input.dimensions), outputSteps), 0, first});
}

Status lowerPack(LoweringContext& context) {
  // Input 0 is the axis; the tensors follow.
  const size_t count = context.operation().inputs.size() - 1;
  const graph::Dimensions& dimensions = context.input(1).dimensions;
  HEARTH_ASSIGN(const int32_t axisArgument, context.operation().scalar<int32_t>(0));
  HEARTH_ASSIGN(const size_t axis,
                ops::resolveAxis(context.operation(), axisArgument, dimensions.size() + 1));
  std::vector<int64_t> outputSteps = stepsOf(context.output(0).dimensions);
  const int64_t step = outputSteps[axis];
  outputSteps.erase(outputSteps.begin() + static_cast<long>(axis));
  for (size_t i = 0; i < count; ++i)
    HEARTH_TRY(addCopy(context, graph::elementSize(*context.output(0).operand),
                       {context.inputTensor(i + 1), context.outputTensor(0),
                        loopsOver(dimensions, stepsOf(dimensions), outputSteps), 0,
                        static_cast<int64_t>(i) * step}));
  return {};
}

Status lowerTile(LoweringContext& context) {
  const graph::Dimensions& input = context.input(0).dimensions;
  const graph::Dimensions& output = context.output(0).dimensions;
  const std::vector<int64_t> inputSteps = stepsOf(input);
  const std::vector<int64_t> outputSteps = stepsOf(output);
  Copy copy{context.inputTensor(0), context.outputTensor(0)};
  for (size_t i = 0; i < input.size(); ++i) {
    copy.loops.push_back({output[i] / input[i], 0, outputSteps[i] * input[i]});
    copy.loops.push_back({input[i], inputSteps[i], outputSteps[i]});
  }
  return addCopy(context, graph::elementSize(*context.input(0).operand), std::move(copy));
}

Status lowerBroadcast(LoweringContext& context) {
  const graph::Dimensions& input = context.input(0).dimensions;
  const graph::Dimensions& output = context.output(0).dimensions;
  const std::vector<int64_t> inputSteps = stepsOf(input);
  const size_t added = output.size() - input.size();
  Copy copy{context.inputTensor(0), context.outputTensor(0)};
  for (size_t i = 0; i < output.size(); ++i) {
    const bool isRepeated = i < added || input[i - added] == 1;
    copy.loops.push_back({output[i], isRepeated ? 0 : inputSteps[i - added], stepsOf(output)[i]});
  }
  return addCopy(context, graph::elementSize(*context.input(0).operand), std::move(copy));
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
