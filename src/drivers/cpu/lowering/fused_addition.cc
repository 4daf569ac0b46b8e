// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/fused_addition.h"

#include <vector>

#include "ops/operation.h"

namespace hearth::cpu {

Result<std::optional<FusedAddition>> findFusedAddition(PlanBuilder* builder,
                                                       ops::FusedActivation activation) {
  const uint32_t output = builder->context().operation->outputs[0];
  const std::vector<uint32_t>& readers = builder->consumers(output);
  if (activation != ops::FusedActivation::kNone || builder->isGraphOutput(output) ||
      readers.size() != 1)
    return std::nullopt;
  const graph::Operation& reader = builder->operation(readers[0]);
  if (reader.type != graph::OperationType::kAdd) return std::nullopt;
  FusedAddition addition;
  addition.operation = readers[0];
  addition.addend = reader.inputs[reader.inputs[0] == output ? 1 : 0];
  addition.output = reader.outputs[0];
  for (const uint32_t operand : {output, addition.addend, addition.output})
    if (builder->operand(operand).type != graph::OperandType::kTensorFloat32) return std::nullopt;
  if (!builder->isWritten(addition.addend) ||
      builder->tensor(addition.addend).dimensions != builder->tensor(output).dimensions ||
      !builder->canTakeOver(addition.operation))
    return std::nullopt;
  const ops::OperationContext context =
      ops::makeContext(builder->model(), builder->subgraph(), reader);
  HEARTH_ASSIGN(const ops::FusedActivation last, ops::parseActivation(context, 2));
  addition.range = ops::activationRange(last);
  return addition;
}

}  // namespace hearth::cpu
