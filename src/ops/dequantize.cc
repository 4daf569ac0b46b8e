// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "ops/weight_rows.h"

namespace hearth::ops {
namespace {

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(1, 1));
  // TFLite dequantises float16 and 4-bit integers as well.
  HEARTH_TRY(signature.inputType(0, kRealTensors));
  HEARTH_TRY(validateWeightScales(signature, 0));
  return signature.outputType(0, kFloatTensors);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  return context.setOutputDimensions(0, context.inputs[0].dimensions);
}

Status execute(OperationContext& context) {
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  std::copy_n(input.data(), input.size(), output.data());
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kDequantizeOperation = {OperationType::kDequantize, validate, prepare,
                                                  execute};

}  // namespace hearth::ops
