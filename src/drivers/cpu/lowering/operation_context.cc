// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/operation_context.h"

namespace hearth::cpu {

ops::OperationContext contextOf(const PlanBuilder& builder, uint32_t operation) {
  ops::OperationContext context =
      ops::makeContext(builder.model(), builder.subgraph(), builder.operation(operation));
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const ops::Tensor& known = builder.tensor(context.operation->inputs[i]);
    context.inputs[i].dimensions = known.dimensions;
    context.inputs[i].hasKnownShape = known.hasKnownShape;
  }
  return context;
}

}  // namespace hearth::cpu
