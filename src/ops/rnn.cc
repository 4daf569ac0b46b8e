// SPDX-License-Identifier: Apache-2.0
// RNN: one step.
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/rnn_cell.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr RnnLayout kLayout = {.weights = 1};
constexpr size_t kActivation = 5;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(6, 2));
  HEARTH_TRY(signature.inputTensor(0, kFloatTensors, 2, 2));
  HEARTH_TRY(validateRnn(signature, kLayout));
  HEARTH_TRY(signature.inputType(kActivation, OperandType::kInt32));
  HEARTH_TRY(signature.outputTypeLike(0, 0));
  return signature.outputTypeLike(1, 0);
}

Result<RnnParameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 0));
  HEARTH_TRY(requireRank(context, 0, 2, 2));
  const Dimensions& input = context.inputs[0].dimensions;
  HEARTH_ASSIGN(RnnParameters parameters, parseRnn(context, kLayout, input[1], 0, input[0]));
  HEARTH_ASSIGN(parameters.activation, parseRecurrentActivation(context, kActivation));
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const RnnParameters parameters, parse(context));
  const Dimensions dimensions = {context.inputs[0].dimensions[0], parameters.unitCount};
  HEARTH_TRY(context.setOutputDimensions(0, dimensions));
  return context.setOutputDimensions(1, dimensions);
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const RnnParameters parameters, parse(context));
  const RealInput input(context.inputs[0]);
  RnnCell cell(context, kLayout, parameters);
  for (size_t batch = 0; batch < context.inputs[0].dimensions[0]; ++batch)
    cell.step(batch, input.data() + batch * parameters.inputSize, nullptr);
  storeReal(context, 0, cell.hiddenStates());
  storeReal(context, 1, cell.hiddenStates());
  return {};
}

}  // namespace

const OperationDefinition kRnnOperation = {OperationType::kRnn, validate, prepare, execute};

}  // namespace hearth::ops
