// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/rnn_cell.h"
#include "ops/sequence_shape.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr RnnLayout kLayout = {.weights = 1};
constexpr size_t kActivation = 5;
constexpr size_t kTimeMajor = 6;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(7, 7, 1, 2));
  HEARTH_TRY(validateSequence(signature, kActivation));
  HEARTH_TRY(validateRnn(signature, kLayout));
  return signature.inputType(kTimeMajor, OperandType::kInt32);
}

struct Parameters {
  RnnParameters cell;
  SequenceShape shape;
};

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, 0, 3, 3));
  HEARTH_ASSIGN(const int32_t timeMajor, context.scalar<int32_t>(kTimeMajor));
  const Dimensions& input = context.inputs[0].dimensions;
  Parameters parameters;
  parameters.shape = SequenceShape::of(input, timeMajor != 0);
  HEARTH_ASSIGN(parameters.cell, parseRnn(context, kLayout, input[2], 0, parameters.shape.batches));
  HEARTH_ASSIGN(parameters.cell.activation, parseRecurrentActivation(context, kActivation));
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  Dimensions output = context.inputs[0].dimensions;
  output[2] = parameters.cell.unitCount;
  HEARTH_TRY(context.setOutputDimensions(0, std::move(output)));
  return context.setOutputDimensions(1, {parameters.shape.batches, parameters.cell.unitCount});
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  RnnCell cell(context, kLayout, parameters.cell);
  const size_t units = parameters.cell.unitCount;
  forEachStep(parameters.shape, false, [&](size_t batch, size_t row) {
    cell.step(batch, input.data() + row * parameters.cell.inputSize, nullptr);
    std::copy_n(cell.hiddenState(batch), units, output.data() + row * units);
  });
  output.store();
  storeReal(context, 1, cell.hiddenStates());
  return {};
}

}  // namespace

const OperationDefinition kUnidirectionalSequenceRnnOperation = {
    OperationType::kUnidirectionalSequenceRnn, validate, prepare, execute};

}  // namespace hearth::ops
