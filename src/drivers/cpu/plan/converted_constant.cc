// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/converted_constant.h"

#include "drivers/cpu/plan/plan.h"

namespace hearth::cpu {

std::vector<float> ConvertedConstant::convert() const {
  std::vector<float> values(static_cast<size_t>(elementCount()) + kReadSlack / sizeof(float));
  convertTo(values.data());
  return values;
}

void ConvertedConstant::convertTo(float* target) const {
  ops::OperationContext context = context_;
  context.outputs[0].data = target;
  // Neither operation fails when its arguments have been checked.
  (void)ops::findOperation(context.operation->type)->execute(context);
}

}  // namespace hearth::cpu
