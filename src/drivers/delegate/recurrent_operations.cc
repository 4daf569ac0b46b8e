// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. TensorFlow Lite keeps their states in variable tensors, which the model has as
// inputs and outputs.
#include <array>

#include "drivers/delegate/operation_writer.h"
#include "ops/quantized_sequence_lstm.h"
#include "tflite_abi/builtin_params.h"

namespace hearth::drivers::delegate {
namespace {

using ops::OperationType;
using tflite_abi::Builtin;

// The value of the structures' activation, where the operation has none.
constexpr int32_t kTanh = 4;

// An input that holds a state before the operation, and the output that holds it afterwards.
struct State {
  size_t before, after;
};

// Inputs [0, count), in which states are variables.
Result<std::vector<int32_t>> inputsWithStates(OperationWriter& writer, size_t count,
                                              std::span<const State> states) {
  std::vector<int32_t> inputs;
  for (size_t i = 0; i < count; ++i) {
    const auto state = std::ranges::find(states, i, &State::before);
    HEARTH_ASSIGN(const int32_t input, state != states.end()
                                           ? writer.variable(state->before, state->after)
                                           : writer.inputOrNone(i));
    inputs.push_back(input);
  }
  return inputs;
}

// Appends the weights of layer normalisation, if there are any.
Status appendLayerNorm(OperationWriter& writer, size_t first, std::vector<int32_t>* inputs) {
  constexpr size_t kWeights = 4;
  std::vector<int32_t> weights;
  for (size_t i = first; i < first + kWeights; ++i) {
    HEARTH_ASSIGN(const int32_t weight, writer.inputOrNone(i));
    weights.push_back(weight);
  }
  const bool isThere = std::ranges::any_of(weights, [](int32_t weight) { return weight >= 0; });
  if (isThere) inputs->insert(inputs->end(), weights.begin(), weights.end());
  return {};
}

Status writeSvdf(OperationWriter& writer) {
  constexpr State kStates[] = {{4, 0}};
  HEARTH_ASSIGN(auto inputs, inputsWithStates(writer, 5, kStates));
  HEARTH_ASSIGN(const int32_t output, writer.output(1));
  HEARTH_ASSIGN(const int32_t rank, writer.scalar<int32_t>(5, 1));
  HEARTH_ASSIGN(const int32_t activation, writer.scalar<int32_t>(6, 0));
  return writer.emit(Builtin::kSvdf, std::move(inputs), {output},
                     tflite_abi::SvdfParams{rank, activation, false});
}

Status writeRnn(OperationWriter& writer) {
  constexpr State kStates[] = {{4, 0}};
  HEARTH_ASSIGN(auto inputs, inputsWithStates(writer, 5, kStates));
  HEARTH_ASSIGN(const int32_t output, writer.output(1));
  HEARTH_ASSIGN(const int32_t activation, writer.scalar<int32_t>(5, 0));
  return writer.emit(Builtin::kRnn, std::move(inputs), {output},
                     tflite_abi::RnnParams{activation, false});
}

Status writeSequenceRnn(OperationWriter& writer) {
  constexpr State kStates[] = {{4, 1}};
  HEARTH_ASSIGN(auto inputs, inputsWithStates(writer, 5, kStates));
  HEARTH_ASSIGN(const int32_t output, writer.output(0));
  HEARTH_ASSIGN(const int32_t activation, writer.scalar<int32_t>(5, 0));
  HEARTH_ASSIGN(const int32_t isTimeMajor, writer.scalar<int32_t>(6, 0));
  return writer.emit(Builtin::kUnidirectionalSequenceRnn, std::move(inputs), {output},
                     tflite_abi::SequenceRnnParams{isTimeMajor != 0, activation, false});
}

// The outputs that are no states: of both directions, or one if they are merged.
Result<std::vector<int32_t>> directions(OperationWriter& writer, bool isMerged) {
  HEARTH_ASSIGN(const int32_t forward, writer.output(0));
  std::vector<int32_t> outputs = {forward};
  if (!isMerged) {
    HEARTH_ASSIGN(const int32_t backward, writer.output(1));
    outputs.push_back(backward);
  }
  return outputs;
}

// States of inputs, which are the outputs behind those of the directions. NNAPI lets a client leave
// these out.
Result<std::vector<State>> statesBehind(const OperationWriter& writer, size_t outputs,
                                        std::span<const size_t> inputs) {
  if (writer.outputCount() != outputs + inputs.size())
    return fail(ErrorCode::kUnsupported, "TensorFlow Lite has no {} without states as outputs.",
                writer.context().describe());
  std::vector<State> states;
  for (size_t i = 0; i < inputs.size(); ++i) states.push_back({inputs[i], outputs + i});
  return states;
}

Status writeBidirectionalRnn(OperationWriter& writer) {
  constexpr size_t kStates[] = {4, 8};
  HEARTH_ASSIGN(const int32_t activation, writer.scalar<int32_t>(12, 0));
  HEARTH_ASSIGN(const bool isTimeMajor, writer.scalar<bool>(13, false));
  HEARTH_ASSIGN(const bool isMerged, writer.scalar<bool>(14, false));
  HEARTH_ASSIGN(auto outputs, directions(writer, isMerged));
  HEARTH_ASSIGN(const auto states, statesBehind(writer, outputs.size(), kStates));
  HEARTH_ASSIGN(auto inputs, inputsWithStates(writer, 12, states));
  return writer.emit(Builtin::kBidirectionalSequenceRnn, std::move(inputs), std::move(outputs),
                     tflite_abi::BidirectionalRnnParams{isTimeMajor, activation, isMerged, false});
}

// Activation and clipping of an LSTM, from input `first` on.
struct LstmScalars {
  int32_t activation = kTanh;
  float cellClip = 0, projectionClip = 0;
};
Result<LstmScalars> lstmScalars(const OperationWriter& writer, size_t first) {
  LstmScalars scalars;
  HEARTH_ASSIGN(scalars.activation, writer.scalar<int32_t>(first, kTanh));
  HEARTH_ASSIGN(scalars.cellClip, writer.scalar<float>(first + 1, 0));
  HEARTH_ASSIGN(scalars.projectionClip, writer.scalar<float>(first + 2, 0));
  return scalars;
}

constexpr size_t kLstmInputs = 20;  // before those of layer normalisation

Status writeLstm(OperationWriter& writer) {
  constexpr State kStates[] = {{18, 1}, {19, 2}};
  HEARTH_ASSIGN(auto inputs, inputsWithStates(writer, kLstmInputs, kStates));
  HEARTH_ASSIGN(const LstmScalars scalars, lstmScalars(writer, kLstmInputs));
  HEARTH_TRY(appendLayerNorm(writer, 23, &inputs));
  HEARTH_ASSIGN(const int32_t output, writer.output(3));
  return writer.emit(Builtin::kLstm, std::move(inputs), {output},
                     tflite_abi::LstmParams{scalars.activation, scalars.cellClip,
                                            scalars.projectionClip, 0, false});
}

Status writeSequenceLstm(OperationWriter& writer) {
  constexpr size_t kStates[] = {18, 19};
  HEARTH_ASSIGN(const auto states, statesBehind(writer, 1, kStates));
  HEARTH_ASSIGN(auto inputs, inputsWithStates(writer, kLstmInputs, states));
  HEARTH_ASSIGN(const LstmScalars scalars, lstmScalars(writer, kLstmInputs));
  HEARTH_ASSIGN(const bool isTimeMajor, writer.scalar<bool>(23, false));
  HEARTH_TRY(appendLayerNorm(writer, 24, &inputs));
  HEARTH_ASSIGN(const int32_t output, writer.output(0));
  return writer.emit(Builtin::kUnidirectionalSequenceLstm, std::move(inputs), {output},
                     tflite_abi::SequenceLstmParams{scalars.activation, scalars.cellClip,
                                                    scalars.projectionClip, isTimeMajor, false});
}

Status writeBidirectionalLstm(OperationWriter& writer) {
  constexpr size_t kStates[] = {35, 36, 37, 38};
  constexpr size_t kInputs = 48;
  constexpr size_t kLayerNorm = 53;
  for (size_t i = kLayerNorm; i < writer.inputCount(); ++i)
    if (writer.context().hasInput(i))
      return fail(ErrorCode::kUnsupported, "TensorFlow Lite has no {} with layer normalisation.",
                  writer.context().describe());
  HEARTH_ASSIGN(const LstmScalars scalars, lstmScalars(writer, kInputs));
  HEARTH_ASSIGN(const bool isMerged, writer.scalar<bool>(51, false));
  HEARTH_ASSIGN(const bool isTimeMajor, writer.scalar<bool>(52, false));
  HEARTH_ASSIGN(auto outputs, directions(writer, isMerged));
  HEARTH_ASSIGN(const auto states, statesBehind(writer, outputs.size(), kStates));
  HEARTH_ASSIGN(auto inputs, inputsWithStates(writer, kInputs, states));
  return writer.emit(
      Builtin::kBidirectionalSequenceLstm, std::move(inputs), std::move(outputs),
      tflite_abi::BidirectionalLstmParams{scalars.activation, scalars.cellClip,
                                          scalars.projectionClip, isMerged, isTimeMajor, false});
}

// What TensorFlow Lite says of the values inside an integer LSTM with five tensors that have no
// values: the gates before layer normalisation, and the hidden state before the projection.
constexpr size_t kIntermediates = 5;
using Quantizations = std::array<std::pair<float, int32_t>, kIntermediates>;

std::vector<int32_t> intermediates(OperationWriter& writer, const Quantizations& quantizations) {
  std::vector<int32_t> tensors;
  for (const auto& [scale, zeroPoint] : quantizations) {
    const bool isHidden = tensors.size() + 1 == kIntermediates;
    tensors.push_back(
        writer.tensors().quantization(isHidden ? kTfLiteInt8 : kTfLiteInt16, scale, zeroPoint));
  }
  return tensors;
}

Status writeQuantizedSequenceLstm(OperationWriter& writer) {
  namespace lstm = ops::quantized_sequence_lstm;
  constexpr State kStates[] = {{lstm::kOutputState, 1}, {lstm::kCellState, 2}};
  HEARTH_ASSIGN(auto inputs, inputsWithStates(writer, kLstmInputs, kStates));
  HEARTH_TRY(appendLayerNorm(writer, lstm::kLayerNormWeights, &inputs));
  HEARTH_ASSIGN(const float cellClip, writer.scalar<float>(lstm::kCellClip, 0));
  HEARTH_ASSIGN(const float projectionClip, writer.scalar<float>(lstm::kProjectionClip, 0));
  HEARTH_ASSIGN(const bool isTimeMajor, writer.scalar<bool>(lstm::kTimeMajor, false));
  Quantizations quantizations;
  for (size_t i = 0; i < kIntermediates; ++i) {
    HEARTH_ASSIGN(quantizations[i].first, writer.scalar<float>(lstm::kIntermediateScales + i, 0));
    HEARTH_ASSIGN(quantizations[i].second,
                  writer.scalar<int32_t>(lstm::kIntermediateZeroPoints + i, 0));
  }
  HEARTH_ASSIGN(const int32_t output, writer.output(0));
  HEARTH_TRY(writer.emit(
      Builtin::kUnidirectionalSequenceLstm, std::move(inputs), {output},
      tflite_abi::SequenceLstmParams{kTanh, cellClip, projectionClip, isTimeMajor, false}, 1));
  writer.node().intermediates = intermediates(writer, quantizations);
  return {};
}

Status writeQuantizedLstm(OperationWriter& writer) {
  constexpr State kStates[] = {{18, 0}, {19, 1}};
  constexpr size_t kScales =
      26;  // of the four gates; then zero point and scale of the hidden state
  HEARTH_ASSIGN(auto inputs, inputsWithStates(writer, kLstmInputs, kStates));
  HEARTH_TRY(appendLayerNorm(writer, kLstmInputs, &inputs));
  HEARTH_ASSIGN(const float cellClip, writer.scalar<float>(24, 0));
  HEARTH_ASSIGN(const float projectionClip, writer.scalar<float>(25, 0));
  Quantizations quantizations;
  for (size_t i = 0; i + 1 < kIntermediates; ++i) {
    HEARTH_ASSIGN(quantizations[i].first, writer.scalar<float>(kScales + i, 0));
  }
  HEARTH_ASSIGN(quantizations.back().second, writer.scalar<int32_t>(30, 0));
  HEARTH_ASSIGN(quantizations.back().first, writer.scalar<float>(31, 0));
  HEARTH_ASSIGN(const int32_t output, writer.output(2));
  HEARTH_TRY(writer.emit(Builtin::kLstm, std::move(inputs), {output},
                         tflite_abi::LstmParams{kTanh, cellClip, projectionClip, 0, false}, 1));
  writer.node().intermediates = intermediates(writer, quantizations);
  return {};
}

}  // namespace

std::span<const OperationEntry> recurrentOperations() {
  static constexpr OperationEntry kEntries[] = {
      {OperationType::kSvdf, writeSvdf},
      {OperationType::kRnn, writeRnn},
      {OperationType::kUnidirectionalSequenceRnn, writeSequenceRnn},
      {OperationType::kBidirectionalSequenceRnn, writeBidirectionalRnn},
      {OperationType::kLstm, writeLstm},
      {OperationType::kUnidirectionalSequenceLstm, writeSequenceLstm},
      {OperationType::kBidirectionalSequenceLstm, writeBidirectionalLstm},
      {OperationType::kQuantizedSequenceLstm, writeQuantizedSequenceLstm},
      {OperationType::kQuantizedLstm, writeQuantizedLstm},
  };
  return kEntries;
}

}  // namespace hearth::drivers::delegate
