// SPDX-License-Identifier: Apache-2.0
// QUANTIZED_LSTM: one step of the integer cell. Its first 26 inputs are those of
// QUANTIZED_SEQUENCE_LSTM, with an input of one step.
#include <cstring>
#include <vector>

#include "ops/integer_lstm.h"
#include "ops/quantized_sequence_lstm.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {

using namespace quantized_sequence_lstm;

namespace {

constexpr size_t kGateScales = 26;  // input, forget, cell, output
constexpr size_t kHiddenZeroPoint = 30;
constexpr size_t kHiddenScale = 31;
constexpr size_t kArgumentCount = 32;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kArgumentCount, 3));
  HEARTH_TRY(validateIntegerLstm(signature));
  HEARTH_TRY(signature.inputRank(kInput, 2, 2));
  for (size_t i = 0; i < 4; ++i)
    HEARTH_TRY(signature.inputType(kGateScales + i, OperandType::kFloat32));
  HEARTH_TRY(signature.inputType(kHiddenZeroPoint, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(kHiddenScale, OperandType::kFloat32));
  HEARTH_TRY(signature.outputTypeLike(0, kOutputState));
  HEARTH_TRY(signature.outputTypeLike(1, kCellState));
  HEARTH_TRY(signature.outputTypeLike(2, kOutputState));
  HEARTH_TRY(signature.outputQuantizationLike(0, kOutputState));
  HEARTH_TRY(signature.outputQuantizationLike(1, kCellState));
  return signature.outputQuantizationLike(2, kOutputState);
}

Result<IntegerLstmArguments> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, kInput, 2, 2));
  HEARTH_ASSIGN(IntegerLstmArguments cell,
                readIntegerLstm(context, context.inputs[kInput].dimensions[0]));
  IntegerLstmArguments::Gate* const gates[] = {&cell.input, &cell.forget, &cell.cell, &cell.output};
  for (size_t i = 0; i < 4; ++i) {
    HEARTH_ASSIGN(gates[i]->intermediateScale, context.scalar<float>(kGateScales + i));
  }
  HEARTH_ASSIGN(cell.hiddenZeroPoint, context.scalar<int32_t>(kHiddenZeroPoint));
  HEARTH_ASSIGN(cell.hiddenScale, context.scalar<float>(kHiddenScale));
  return cell;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const IntegerLstmArguments cell, parse(context));
  HEARTH_TRY(IntegerLstm::make(context, cell));
  HEARTH_TRY(context.setOutputDimensions(0, context.inputs[kOutputState].dimensions));
  HEARTH_TRY(context.setOutputDimensions(1, context.inputs[kCellState].dimensions));
  return context.setOutputDimensions(2, context.inputs[kOutputState].dimensions);
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const IntegerLstmArguments arguments, parse(context));
  HEARTH_ASSIGN(IntegerLstm lstm, IntegerLstm::make(context, arguments));
  const Tensor& input = context.inputs[kInput];
  const Tensor& outputState = context.inputs[kOutputState];
  const Tensor& cellState = context.inputs[kCellState];
  std::vector<int8_t> output(outputState.as<int8_t>(),
                             outputState.as<int8_t>() + outputState.elementCount());
  std::vector<int16_t> cell(cellState.as<int16_t>(),
                            cellState.as<int16_t>() + cellState.elementCount());
  for (size_t b = 0; b < input.dimensions[0]; ++b)
    lstm.step(input.as<int8_t>() + b * arguments.inputSize,
              output.data() + b * arguments.outputSize, cell.data() + b * arguments.unitCount);
  for (const size_t i : {0, 2})
    if (context.hasOutput(i)) std::memcpy(context.outputs[i].data, output.data(), output.size());
  if (context.hasOutput(1))
    std::memcpy(context.outputs[1].data, cell.data(), cell.size() * sizeof(int16_t));
  return {};
}

}  // namespace

const OperationDefinition kQuantizedLstmOperation = {OperationType::kQuantizedLstm, validate,
                                                     prepare, execute};

}  // namespace hearth::ops
