// SPDX-License-Identifier: Apache-2.0
#include "ops/pool_2d.h"

#include <utility>

#include "drivers/vulkan/lowering/lowering.h"

namespace hearth::vulkan {
namespace {

// The constant 0 of pool.comp.
enum class PoolKind : uint32_t { kAverage, kMaximum, kRootMeanSquare };

PoolKind poolKindOf(ops::OperationType type) {
  if (type == ops::OperationType::kAveragePool2d) return PoolKind::kAverage;
  return type == ops::OperationType::kMaxPool2d ? PoolKind::kMaximum : PoolKind::kRootMeanSquare;
}

}  // namespace

Status lowerPool(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::Pool2dParameters p, ops::parsePool2d(context.operation()));
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(context.input(0).type()));
  Dispatch dispatch;
  dispatch.shader = "pool." + suffix;
  dispatch.constant = std::to_underlying(poolKindOf(context.operation().operation->type));
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}};
  const ops::Window2d& w = p.window;
  const auto [lowest, highest] = activationLimits(p.activation, *context.output(0).operand);
  dispatch.parameters = {p.output.batches,       p.output.height,       p.output.width,
                         p.output.channels,      p.input.height,        p.input.width,
                         bitsOf(w.filterHeight), bitsOf(w.filterWidth), bitsOf(w.strideHeight),
                         bitsOf(w.strideWidth),  bitsOf(w.padding.top), bitsOf(w.padding.left)};
  appendStrides(ops::ImageLayout(p.input, p.isNchw), &dispatch.parameters);
  appendStrides(ops::ImageLayout(p.output, p.isNchw), &dispatch.parameters);
  dispatch.parameters.insert(dispatch.parameters.end(), {lowest, highest});
  return context.addRow(std::move(dispatch), context.output(0).elementCount());
}

}  // namespace hearth::vulkan
