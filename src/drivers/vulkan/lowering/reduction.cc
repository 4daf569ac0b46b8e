// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce.h"

#include <utility>

#include "drivers/vulkan/lowering/copies.h"
#include "drivers/vulkan/lowering/lowering.h"

namespace hearth::vulkan {
namespace {

using ops::OperationType;

constexpr size_t kMostLoops = 4;

// The constant 0 of reduce.comp.
enum class ReduceKind : uint32_t { kMean, kSum, kMaximum, kMinimum, kProduct };

ReduceKind reduceKindOf(OperationType type) {
  switch (type) {
    case OperationType::kMean:
      return ReduceKind::kMean;
    case OperationType::kReduceSum:
      return ReduceKind::kSum;
    case OperationType::kReduceMax:
      return ReduceKind::kMaximum;
    case OperationType::kReduceMin:
      return ReduceKind::kMinimum;
    default:
      return ReduceKind::kProduct;
  }
}

// Loops over some dimensions of the input; neighbours are one loop.
struct Loops {
  uint32_t count = 1;
  std::vector<uint32_t> sizes, steps;

  void add(uint32_t size, uint32_t step, bool joins) {
    count *= size;
    if (joins && !sizes.empty()) {
      sizes.back() *= size;
      steps.back() = step;
      return;
    }
    sizes.push_back(size);
    steps.push_back(step);
  }
  void appendTo(std::vector<uint32_t>* parameters) const {
    for (const auto& [list, filler] : {std::pair(&sizes, 1u), std::pair(&steps, 0u)}) {
      parameters->insert(parameters->end(), kMostLoops - list->size(), filler);
      parameters->insert(parameters->end(), list->begin(), list->end());
    }
  }
};

}  // namespace

Status lowerReduction(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::ReduceParameters p, ops::parseReduce(context.operation()));
  const ops::Tensor& input = context.input(0);
  if (graph::isQuantized(input.type()))
    return fail(ErrorCode::kUnsupported, "The GPU driver has no {} of {}.",
                graph::nameOf(context.operation().operation->type), graph::nameOf(input.type()));
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(input.type()));
  const std::vector<int64_t> steps = stepsOf(input.dimensions);
  Loops kept, folded;
  for (size_t i = 0; i < input.rank(); ++i) {
    const bool joins = i > 0 && p.isReduced[i] == p.isReduced[i - 1];
    (p.isReduced[i] ? folded : kept)
        .add(input.dimensions[i], static_cast<uint32_t>(steps[i]), joins);
  }
  if (kept.sizes.size() > kMostLoops || folded.sizes.size() > kMostLoops)
    return fail(ErrorCode::kUnsupported, "{} reduces too many dimensions apart for the GPU driver.",
                context.operation().describe());
  Dispatch dispatch;
  dispatch.shader = "reduce." + suffix;
  dispatch.constant = std::to_underlying(reduceKindOf(context.operation().operation->type));
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}};
  dispatch.parameters = {kept.count};
  kept.appendTo(&dispatch.parameters);
  dispatch.parameters.push_back(folded.count);
  folded.appendTo(&dispatch.parameters);
  return context.addRow(std::move(dispatch), kept.count);
}

}  // namespace hearth::vulkan
