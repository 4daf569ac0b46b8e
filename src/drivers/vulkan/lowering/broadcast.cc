// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/lowering/broadcast.h"

namespace hearth::vulkan {
namespace {

constexpr size_t kMostDimensions = 6;

void appendPadded(const std::vector<uint32_t>& values, uint32_t filler,
                  std::vector<uint32_t>* parameters) {
  parameters->insert(parameters->end(), kMostDimensions - values.size(), filler);
  parameters->insert(parameters->end(), values.begin(), values.end());
}

// For each dimension of the output the step in an input of this shape; 0 where it is repeated.
std::vector<uint32_t> broadcastSteps(const graph::Dimensions& input, size_t rank) {
  std::vector<uint32_t> steps(rank, 0);
  uint32_t step = 1;
  for (size_t i = input.size(); i-- > 0;) {
    steps[i + rank - input.size()] = input[i] == 1 ? 0 : step;
    step *= input[i];
  }
  return steps;
}

}  // namespace

Result<std::vector<uint32_t>> broadcastParameters(const LoweringContext& context,
                                                  const std::vector<size_t>& inputs) {
  const graph::Dimensions& output = context.output(0).dimensions;
  if (output.size() > kMostDimensions)
    return fail(ErrorCode::kUnsupported, "{} has {} dimensions, the GPU driver takes {}.",
                context.operation().describe(), output.size(), kMostDimensions);
  std::vector<uint32_t> parameters = {static_cast<uint32_t>(context.output(0).elementCount())};
  appendPadded(output, 1, &parameters);
  for (const size_t input : inputs)
    appendPadded(broadcastSteps(context.input(input).dimensions, output.size()), 0, &parameters);
  return parameters;
}

}  // namespace hearth::vulkan
