// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/shared_operations.h"

namespace hearth::cpu {

Result<bool> lowerShared(PlanBuilder* builder) {
  builder->addOperation("own", builder->context());
  return true;
}

Result<bool> lowerDynamicUpdateSlice(PlanBuilder* builder) {
  const bool isConstant = builder->context().inputs[0].data != nullptr;
  Node& node = builder->addOperation("own", builder->context());
  if (!isConstant) node.inPlaceInputs = {0};
  return true;
}

Result<bool> lowerEmbeddingLookup(PlanBuilder* builder) {
  const uint32_t table = builder->context().operation->inputs[1];
  const ConvertedConstantRef converted = builder->converted(table);
  if (converted == nullptr) return lowerShared(builder);
  ops::OperationContext context = builder->context();
  const ValueId source = builder->read(converted->source());
  context.inputs[1] = builder->tensor(converted->source());
  context.inputs[1].data = const_cast<uint8_t*>(builder->constantOf(source));
  builder->addOperation("own", context);
  return true;
}

}  // namespace hearth::cpu
