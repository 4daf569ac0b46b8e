// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/converted_constant.h"

#include "drivers/cpu/plan/plan.h"

namespace hearth::cpu {

using graph::OperationType;

std::optional<uint32_t> ConvertedConstant::source() const {
  const OperationType type = operation().type;
  const bool isConversion = type == OperationType::kDequantize || type == OperationType::kCast;
  if (!isConversion || inputs_[0] != nullptr) return std::nullopt;
  return operation().inputs[0];
}

uint64_t ConvertedConstant::byteCount() const {
  const ops::Tensor& output = context_.outputs[0];
  return output.elementCount() * graph::elementSize(output.type());
}

std::vector<uint8_t> ConvertedConstant::convert() const {
  std::vector<uint8_t> bytes(static_cast<size_t>(byteCount()) + kReadSlack);
  // Operations that may fail are computed before (PlanConstants::setComputed()).
  (void)writeTo(bytes.data());
  return bytes;
}

Status ConvertedConstant::writeTo(uint8_t* target) const {
  ops::OperationContext context = context_;
  std::vector<std::vector<uint8_t>> inner;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i] != nullptr)
      context.inputs[i].data = inner.emplace_back(inputs_[i]->convert()).data();
  context.outputs[0].data = target;
  return ops::findOperation(operation().type)->execute(context);
}

}  // namespace hearth::cpu
