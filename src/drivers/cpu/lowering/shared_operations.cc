// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/shared_operations.h"

#include <optional>

#include "drivers/cpu/lowering/declined.h"
#include "ops/validation.h"

namespace hearth::cpu {

using graph::OperandType;

Result<bool> lowerShared(PlanBuilder* builder) {
  builder->addOperation("own", builder->context());
  return true;
}

Result<bool> lowerNumbers(PlanBuilder* builder) {
  switch (builder->operand(builder->context().operation->inputs[0]).type) {
    case OperandType::kTensorFloat32:
    case OperandType::kTensorInt32:
    case OperandType::kTensorInt64:
    case OperandType::kTensorBool8:
    case OperandType::kTensorComplex64:
      return lowerShared(builder);
    default:
      return false;
  }
}

Result<bool> lowerComparison(PlanBuilder* builder) {
  const graph::Operand& a = builder->operand(builder->context().operation->inputs[0]);
  const bool isQuantized8 =
      a.type == OperandType::kTensorQuant8Asymm || a.type == OperandType::kTensorQuant8AsymmSigned;
  if (isQuantized8 &&
      ops::isSameQuantization(a, builder->operand(builder->context().operation->inputs[1])))
    return lowerShared(builder);
  HEARTH_ASSIGN(const bool isDone, lowerNumbers(builder));
  if (isDone) return true;
  return builder->decline(a.type == OperandType::kTensorFloat16 ? kHalf : kOtherInputScale);
}

Result<bool> lowerDynamicUpdateSlice(PlanBuilder* builder) {
  const bool isConstant = builder->context().inputs[0].data != nullptr;
  Node& node = builder->addOperation("own", builder->context());
  if (!isConstant) node.inPlaceInputs = {0};
  return true;
}

Result<bool> lowerEmbeddingLookup(PlanBuilder* builder) {
  const uint32_t table = builder->context().operation->inputs[1];
  const ConvertedConstantRef converted = builder->constants().converted(table);
  const std::optional<uint32_t> constant =
      converted == nullptr ? std::nullopt : converted->source();
  if (!constant) return lowerShared(builder);
  ops::OperationContext context = builder->context();
  const ValueId source = builder->read(*constant);
  context.inputs[1] = builder->tensor(*constant);
  context.inputs[1].data = const_cast<uint8_t*>(builder->constantOf(source));
  builder->addOperation("own", context);
  return true;
}

}  // namespace hearth::cpu
