// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/lowering/copies.h"

#include <utility>

namespace hearth::vulkan {
namespace {

constexpr size_t kMostLoops = 6;

// Drops loops of one round, and joins a loop with the one around it where both sides go on alike.
std::vector<CopyLoop> simplified(const std::vector<CopyLoop>& loops) {
  std::vector<CopyLoop> simple;
  for (const CopyLoop& loop : loops) {
    if (loop.size == 1) continue;
    if (!simple.empty()) {
      CopyLoop& outer = simple.back();
      if (outer.inputStep == loop.inputStep * loop.size &&
          outer.outputStep == loop.outputStep * loop.size) {
        outer = {outer.size * loop.size, loop.inputStep, loop.outputStep};
        continue;
      }
    }
    simple.push_back(loop);
  }
  return simple;
}

}  // namespace

Status addCopy(LoweringContext& context, size_t elementBytes, Copy copy) {
  HEARTH_ASSIGN(const std::string suffix, context.bitsSuffix(elementBytes));
  const std::vector<CopyLoop> loops = simplified(copy.loops);
  if (loops.size() > kMostLoops)
    return fail(ErrorCode::kUnsupported, "{} moves along {} dimensions, the GPU driver takes {}.",
                context.operation().describe(), loops.size(), kMostLoops);
  uint64_t count = 1;
  std::vector<uint32_t> sizes(kMostLoops - loops.size(), 1);
  std::vector<uint32_t> inputSteps(kMostLoops - loops.size(), 0);
  std::vector<uint32_t> outputSteps(kMostLoops - loops.size(), 0);
  for (const CopyLoop& loop : loops) {
    count *= loop.size;
    sizes.push_back(loop.size);
    inputSteps.push_back(bitsOf(static_cast<int32_t>(loop.inputStep)));
    outputSteps.push_back(bitsOf(static_cast<int32_t>(loop.outputStep)));
  }
  Dispatch dispatch;
  dispatch.shader = "copy." + suffix;
  dispatch.bindings = {{copy.input}, {copy.output, true}};
  dispatch.parameters = {static_cast<uint32_t>(count)};
  for (const auto* list : {&sizes, &inputSteps, &outputSteps})
    dispatch.parameters.insert(dispatch.parameters.end(), list->begin(), list->end());
  dispatch.parameters.push_back(bitsOf(static_cast<int32_t>(copy.inputFirst)));
  dispatch.parameters.push_back(bitsOf(static_cast<int32_t>(copy.outputFirst)));
  return context.addRow(std::move(dispatch), count);
}

Status addFill(LoweringContext& context, std::vector<uint8_t> element) {
  const size_t bytes = element.size();
  const TensorId value = context.addConstant(
      bytes, [element = std::move(element)]() -> Result<std::vector<uint8_t>> { return element; });
  const auto count = static_cast<uint32_t>(context.output(0).elementCount());
  return addCopy(context, bytes, {value, context.outputTensor(0), {{count, 0, 1}}});
}

std::vector<int64_t> stepsOf(const graph::Dimensions& dimensions) {
  std::vector<int64_t> steps(dimensions.size());
  int64_t step = 1;
  for (size_t i = dimensions.size(); i-- > 0;) {
    steps[i] = step;
    step *= dimensions[i];
  }
  return steps;
}

}  // namespace hearth::vulkan
