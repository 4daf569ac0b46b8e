// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized_sequence_lstm.h"

#include <cstring>
#include <utility>

#include "ops/integer_lstm.h"
#include "ops/registry.h"
#include "ops/sequence_shape.h"
#include "ops/validation.h"

namespace hearth::ops {

using namespace quantized_sequence_lstm;

namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kInputCount, kOutputCount));
  HEARTH_TRY(validateIntegerLstm(signature));
  HEARTH_TRY(signature.inputRank(kInput, 3, 3));
  HEARTH_TRY(signature.inputType(kTimeMajor, OperandType::kBool));
  for (uint32_t i = 0; i < 5; ++i) {
    HEARTH_TRY(signature.inputType(kIntermediateScales + i, OperandType::kFloat32));
    HEARTH_TRY(signature.inputType(kIntermediateZeroPoints + i, OperandType::kInt32));
  }
  HEARTH_TRY(signature.outputTypeLike(0, kOutputState));
  HEARTH_TRY(signature.outputLike(1, kOutputState));
  return signature.outputLike(2, kCellState);
}

struct Parameters {
  IntegerLstmArguments cell;
  SequenceShape shape;
};

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, kInput, 3, 3));
  Parameters parameters;
  HEARTH_ASSIGN(const bool isTimeMajor, context.scalar<bool>(kTimeMajor));
  parameters.shape = SequenceShape::of(context.inputs[kInput].dimensions, isTimeMajor);
  HEARTH_ASSIGN(parameters.cell, readIntegerLstm(context, parameters.shape.batches));
  IntegerLstmArguments& cell = parameters.cell;
  IntegerLstmArguments::Gate* const gates[] = {&cell.input, &cell.forget, &cell.cell, &cell.output};
  for (uint32_t i = 0; i < 4; ++i) {
    // Without layer normalisation the gates have 12 fraction bits.
    gates[i]->intermediateScale = 0x1p-12f;
    if (gates[i]->layerNormWeights == nullptr) continue;
    HEARTH_ASSIGN(gates[i]->intermediateScale, context.scalar<float>(kIntermediateScales + i));
  }
  HEARTH_ASSIGN(cell.hiddenScale, context.scalar<float>(kIntermediateScales + 4));
  HEARTH_ASSIGN(cell.hiddenZeroPoint, context.scalar<int32_t>(kIntermediateZeroPoints + 4));
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  HEARTH_TRY(IntegerLstm::make(context, parameters.cell));
  Dimensions output = context.inputs[kInput].dimensions;
  output[2] = parameters.cell.outputSize;
  HEARTH_TRY(context.setOutputDimensions(0, std::move(output)));
  HEARTH_TRY(context.setOutputDimensions(1, context.inputs[kOutputState].dimensions));
  return context.setOutputDimensions(2, context.inputs[kCellState].dimensions);
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(QuantizedSequenceLstm lstm, QuantizedSequenceLstm::make(context));
  lstm.run(context);
  return {};
}

}  // namespace

QuantizedSequenceLstm::QuantizedSequenceLstm(IntegerLstm cell, const SequenceShape& shape,
                                             size_t inputSize, size_t outputSize, size_t unitCount)
    : cell_(std::move(cell)),
      shape_(shape),
      inputSize_(inputSize),
      outputSize_(outputSize),
      unitCount_(unitCount) {}

Result<QuantizedSequenceLstm> QuantizedSequenceLstm::make(const OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  HEARTH_ASSIGN(IntegerLstm cell, IntegerLstm::make(context, parameters.cell));
  return QuantizedSequenceLstm(std::move(cell), parameters.shape, parameters.cell.inputSize,
                               parameters.cell.outputSize, parameters.cell.unitCount);
}

void QuantizedSequenceLstm::run(const OperationContext& context) {
  const Tensor& outputState = context.inputs[kOutputState];
  const Tensor& cellState = context.inputs[kCellState];
  output_.assign(outputState.as<int8_t>(), outputState.as<int8_t>() + outputState.elementCount());
  state_.assign(cellState.as<int16_t>(), cellState.as<int16_t>() + cellState.elementCount());
  forEachStep(shape_, false, [&](size_t batch, size_t row) {
    int8_t* output = output_.data() + batch * outputSize_;
    cell_.step(context.inputs[kInput].as<int8_t>() + row * inputSize_, output,
               state_.data() + batch * unitCount_);
    std::memcpy(context.outputs[0].as<int8_t>() + row * outputSize_, output, outputSize_);
  });
  if (context.hasOutput(1)) std::memcpy(context.outputs[1].data, output_.data(), output_.size());
  if (context.hasOutput(2))
    std::memcpy(context.outputs[2].data, state_.data(), state_.size() * sizeof(int16_t));
}

const OperationDefinition kQuantizedSequenceLstmOperation = {OperationType::kQuantizedSequenceLstm,
                                                             validate, prepare, execute};

}  // namespace hearth::ops
