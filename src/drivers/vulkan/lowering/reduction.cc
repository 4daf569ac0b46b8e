// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce.h"

#include <utility>

#include "drivers/vulkan/lowering/copies.h"
#include "drivers/vulkan/lowering/lowering.h"
#include "drivers/vulkan/lowering/tables.h"
#include "ops/quantization.h"
#include "ops/validation.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;
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
    case OperationType::kReduceAny:
      return ReduceKind::kMaximum;
    case OperationType::kReduceMin:
    case OperationType::kReduceAll:
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

// Makes the dispatch one of quantised numbers.
Status quantize(LoweringContext& context, uint64_t folded, Dispatch* dispatch) {
  const graph::Operand& input = *context.input(0).operand;
  const graph::Operand& output = *context.output(0).operand;
  const auto kind = static_cast<ReduceKind>(dispatch->constant);
  // The greatest sum has to fit into an int32.
  constexpr uint64_t kMostFolded = uint64_t{1} << 23;
  constexpr int64_t kMostSteps = 255;  // of one element from the zero point
  if (kind == ReduceKind::kProduct || folded > kMostFolded)
    return fail(ErrorCode::kUnsupported, "The GPU driver has no {} of {} elements of {}.",
                graph::nameOf(context.operation().operation->type), folded,
                graph::nameOf(input.type));
  // The sum of steps from the zero point, as the reference kernel makes a result of it.
  const double divisor = kind == ReduceKind::kMean ? static_cast<double>(folded) : 1.0;
  const auto resultOf = [&output, scale = double{input.scale}, divisor](int64_t sum) {
    return ops::quantize(scale * static_cast<double>(sum) / divisor, output);
  };
  const int64_t most = kMostSteps * static_cast<int64_t>(folded);
  dispatch->bindings.push_back(
      {context.addConstant(kStepBytes, [&output, most, resultOf]() -> Result<std::vector<uint8_t>> {
        return sumSteps(output, most, resultOf);
      })});
  dispatch->parameters.insert(dispatch->parameters.end(),
                              {bitsOf(input.zeroPoint), bitsOf(lowestStored(output.type))});
  return {};
}

}  // namespace

Status lowerReduction(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::ReduceParameters p, ops::parseReduce(context.operation()));
  const ops::Tensor& input = context.input(0);
  const bool isTruth = input.type() == OperandType::kTensorBool8;
  const bool isQuantized = graph::isQuantized(input.type()) || isTruth;
  std::string suffix = "u8";
  if (isTruth) {
    HEARTH_TRY(context.bitsSuffix(1));
  } else {
    HEARTH_ASSIGN(suffix, context.numberSuffix(input.type()));
  }
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
  dispatch.shader = (isQuantized ? "reduce_quantized." : "reduce.") + suffix;
  dispatch.constant = std::to_underlying(reduceKindOf(context.operation().operation->type));
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}};
  dispatch.parameters = {kept.count};
  kept.appendTo(&dispatch.parameters);
  dispatch.parameters.push_back(folded.count);
  folded.appendTo(&dispatch.parameters);
  if (isQuantized) HEARTH_TRY(quantize(context, folded.count, &dispatch));
  return context.addRow(std::move(dispatch), kept.count);
}

}  // namespace hearth::vulkan
