// SPDX-License-Identifier: Apache-2.0
// Operations that move elements and do not look at them.
#include <algorithm>
#include <utility>

#include "drivers/vulkan/lowering/copies.h"
#include "drivers/vulkan/lowering/lowering.h"
#include "ops/concatenation.h"
#include "ops/pad.h"
#include "ops/reshape.h"

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
    if (!haveSameQuantization(*input.operand, output))
      return fail(ErrorCode::kUnsupported,
                  "The GPU driver has no CONCATENATION of tensors of different scales.");
    HEARTH_TRY(
        addCopy(context, graph::elementSize(output),
                {context.inputTensor(i), context.outputTensor(0),
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

}  // namespace hearth::vulkan
