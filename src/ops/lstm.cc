// SPDX-License-Identifier: Apache-2.0
// LSTM: one step. The scratch output has no meaning and is zeroed.
#include <cstring>

#include "ops/lstm_cell.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr LstmLayout kLayout = {
    .input = 0, .weights = 1, .outputState = 18, .cellState = 19, .layerNorm = 23};
constexpr size_t kActivation = 20;
enum Output : size_t { kScratch, kOutputState, kCellState, kOutput };

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(23, 27, 4));
  HEARTH_TRY(signature.inputTensor(0, kFloatTensors, 2, 2));
  HEARTH_TRY(validateLstm(signature, kLayout));
  HEARTH_TRY(signature.inputType(kActivation, OperandType::kInt32));
  HEARTH_TRY(signature.floatScalar(kActivation + 1, 0));
  HEARTH_TRY(signature.floatScalar(kActivation + 2, 0));
  for (size_t i = 0; i < 4; ++i) HEARTH_TRY(signature.outputTypeLike(i, 0));
  return {};
}

Result<LstmParameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 0));
  HEARTH_TRY(requireRank(context, 0, 2, 2));
  const Dimensions& input = context.inputs[0].dimensions;
  HEARTH_ASSIGN(LstmParameters parameters, parseLstm(context, kLayout, input[1], input[0]));
  HEARTH_TRY(parseLstmScalars(context, kActivation, &parameters));
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const LstmParameters parameters, parse(context));
  const uint32_t batches = context.inputs[0].dimensions[0];
  const uint64_t scratch = uint64_t{parameters.unitCount} * (parameters.isCoupled ? 3 : 4);
  if (scratch > UINT32_MAX)
    return fail(ErrorCode::kBadData, "{} has {} units.", context.describe(), parameters.unitCount);
  HEARTH_TRY(context.setOutputDimensions(kScratch, {batches, static_cast<uint32_t>(scratch)}));
  HEARTH_TRY(context.setOutputDimensions(kOutputState, {batches, parameters.outputSize}));
  HEARTH_TRY(context.setOutputDimensions(kCellState, {batches, parameters.unitCount}));
  return context.setOutputDimensions(kOutput, {batches, parameters.outputSize});
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const LstmParameters parameters, parse(context));
  const RealInput input(context.inputs[0]);
  LstmCell cell(context, kLayout, parameters);
  cell.step({input.data(), parameters.inputSize, context.inputs[0].dimensions[0]}, {});
  if (context.hasOutput(kScratch)) {
    const Tensor& scratch = context.outputs[kScratch];
    std::memset(scratch.data, 0, scratch.elementCount() * graph::elementSize(scratch.type()));
  }
  storeReal(context, kOutputState, cell.outputStates());
  storeReal(context, kCellState, cell.cellStates());
  storeReal(context, kOutput, cell.outputStates());
  return {};
}

}  // namespace

const OperationDefinition kLstmOperation = {OperationType::kLstm, validate, prepare, execute};

}  // namespace hearth::ops
