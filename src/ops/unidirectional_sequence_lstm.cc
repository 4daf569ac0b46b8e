// SPDX-License-Identifier: Apache-2.0
#include "ops/lstm_cell.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr LstmLayout kLayout = {
    .input = 0, .weights = 1, .outputState = 18, .cellState = 19, .layerNorm = 24};
constexpr size_t kActivation = 20;
constexpr size_t kTimeMajor = 23;
enum Output : size_t { kOutput, kOutputState, kCellState };

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(24, 28, 1, 3));
  HEARTH_TRY(validateSequence(signature, kActivation));
  HEARTH_TRY(validateLstm(signature, kLayout));
  HEARTH_TRY(signature.floatScalar(kActivation + 1, 0));
  HEARTH_TRY(signature.floatScalar(kActivation + 2, 0));
  return signature.inputType(kTimeMajor, OperandType::kBool);
}

struct Parameters {
  LstmParameters cell;
  SequenceShape shape;
};

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, 0, 3, 3));
  Parameters parameters;
  HEARTH_ASSIGN(const bool isTimeMajor, context.scalar<bool>(kTimeMajor));
  const Dimensions& input = context.inputs[0].dimensions;
  parameters.shape = SequenceShape::of(input, isTimeMajor);
  HEARTH_ASSIGN(parameters.cell, parseLstm(context, kLayout, input[2], parameters.shape.batches));
  HEARTH_TRY(parseLstmScalars(context, kActivation, &parameters.cell));
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  Dimensions output = context.inputs[0].dimensions;
  output[2] = parameters.cell.outputSize;
  HEARTH_TRY(context.setOutputDimensions(kOutput, std::move(output)));
  HEARTH_TRY(context.setOutputDimensions(kOutputState,
                                         {parameters.shape.batches, parameters.cell.outputSize}));
  return context.setOutputDimensions(kCellState,
                                     {parameters.shape.batches, parameters.cell.unitCount});
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[kOutput]);
  LstmCell cell(context, kLayout, parameters.cell);
  const size_t outputSize = parameters.cell.outputSize;
  runLstm(&cell, parameters.shape, false, input.data(), parameters.cell.inputSize, nullptr, 0,
          outputSize, output.data(), outputSize);
  output.store();
  storeReal(context, kOutputState, cell.outputStates());
  storeReal(context, kCellState, cell.cellStates());
  return {};
}

}  // namespace

const OperationDefinition kUnidirectionalSequenceLstmOperation = {
    OperationType::kUnidirectionalSequenceLstm, validate, prepare, execute};

}  // namespace hearth::ops
