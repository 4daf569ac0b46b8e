// SPDX-License-Identifier: Apache-2.0
#include "ops/lstm_cell.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr size_t kAuxInput = 39;
constexpr LstmLayout kForward = {.input = 0,
                                 .weights = 1,
                                 .outputState = 35,
                                 .cellState = 36,
                                 .layerNorm = 53,
                                 .auxInput = kAuxInput,
                                 .auxWeights = 40};
constexpr LstmLayout kBackward = {.input = 0,
                                  .weights = 18,
                                  .outputState = 37,
                                  .cellState = 38,
                                  .layerNorm = 57,
                                  .auxInput = kAuxInput,
                                  .auxWeights = 44};
constexpr size_t kActivation = 48;
constexpr size_t kMergeOutputs = 51;
constexpr size_t kTimeMajor = 52;

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(61, 61, 1, 6));
  HEARTH_TRY(signature.inputType(0, kFloatTensors));
  HEARTH_TRY(signature.inputRank(0, 3, 3));
  HEARTH_TRY(validateLstm(signature, kForward));
  HEARTH_TRY(validateLstm(signature, kBackward));
  HEARTH_TRY(signature.optionalInputTypeLike(kAuxInput, 0));
  HEARTH_TRY(signature.inputType(kActivation, OperandType::kInt32));
  HEARTH_TRY(signature.floatScalar(kActivation + 1, 0));
  HEARTH_TRY(signature.floatScalar(kActivation + 2, 0));
  HEARTH_TRY(signature.inputType(kMergeOutputs, OperandType::kBool));
  HEARTH_TRY(signature.inputType(kTimeMajor, OperandType::kBool));
  for (size_t i = 0; i < signature.outputCount(); ++i) HEARTH_TRY(signature.outputTypeLike(i, 0));
  return {};
}

struct Parameters {
  LstmParameters forward;
  LstmParameters backward;
  SequenceShape shape;
  bool mergesOutputs = false;
  // Without weights of its own the auxiliary input is what the backward cell reads.
  bool backwardReadsAux = false;
};

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, 0, 3, 3));
  Parameters parameters;
  HEARTH_ASSIGN(parameters.shape.isTimeMajor, context.scalar<bool>(kTimeMajor));
  HEARTH_ASSIGN(parameters.mergesOutputs, context.scalar<bool>(kMergeOutputs));
  const Dimensions& input = context.inputs[0].dimensions;
  parameters.shape.batches = input[parameters.shape.isTimeMajor ? 1 : 0];
  parameters.shape.steps = input[parameters.shape.isTimeMajor ? 0 : 1];
  uint32_t backwardSize = input[2];
  if (isGiven(context, kAuxInput)) {
    const Dimensions& aux = context.inputs[kAuxInput].dimensions;
    if (aux.size() != 3 || aux[0] != input[0] || aux[1] != input[1])
      return fail(ErrorCode::kBadData, "The auxiliary input of {} has the shape {}, the input {}.",
                  context.describe(), graph::describeDimensions(aux),
                  graph::describeDimensions(input));
    parameters.backwardReadsAux = !isGiven(context, kForward.auxWeights + 1);
    if (parameters.backwardReadsAux) backwardSize = aux[2];
  }
  HEARTH_ASSIGN(parameters.forward,
                parseLstm(context, kForward, input[2], parameters.shape.batches));
  HEARTH_ASSIGN(parameters.backward,
                parseLstm(context, kBackward, backwardSize, parameters.shape.batches));
  HEARTH_TRY(parseLstmScalars(context, kActivation, &parameters.forward));
  HEARTH_TRY(parseLstmScalars(context, kActivation, &parameters.backward));
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  Dimensions output = context.inputs[0].dimensions;
  const uint32_t batches = parameters.shape.batches;
  const LstmParameters& forward = parameters.forward;
  const LstmParameters& backward = parameters.backward;
  const uint64_t merged = uint64_t{forward.outputSize} + backward.outputSize;
  if (merged > UINT32_MAX)
    return fail(ErrorCode::kBadData, "{} has {} outputs.", context.describe(), merged);
  output[2] = parameters.mergesOutputs ? static_cast<uint32_t>(merged) : forward.outputSize;
  HEARTH_TRY(context.setOutputDimensions(0, output));
  size_t next = 1;
  if (!parameters.mergesOutputs) {
    output[2] = backward.outputSize;
    HEARTH_TRY(context.setOutputDimensions(next++, std::move(output)));
  }
  HEARTH_TRY(context.setOutputDimensions(next, {batches, forward.outputSize}));
  HEARTH_TRY(context.setOutputDimensions(next + 1, {batches, forward.unitCount}));
  HEARTH_TRY(context.setOutputDimensions(next + 2, {batches, backward.outputSize}));
  return context.setOutputDimensions(next + 3, {batches, backward.unitCount});
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const LstmParameters& forward = parameters.forward;
  const LstmParameters& backward = parameters.backward;
  const RealInput input(context.inputs[0]);
  std::unique_ptr<RealInput> auxInput;
  if (isGiven(context, kAuxInput))
    auxInput = std::make_unique<RealInput>(context.inputs[kAuxInput]);
  const float* aux = auxInput == nullptr ? nullptr : auxInput->data();
  LstmCell forwardCell(context, kForward, forward);
  LstmCell backwardCell(context, kBackward, backward);
  const size_t rows = size_t{parameters.shape.batches} * parameters.shape.steps;
  const size_t forwardStride =
      forward.outputSize + (parameters.mergesOutputs ? backward.outputSize : 0);
  const size_t backwardStride = parameters.mergesOutputs ? forwardStride : backward.outputSize;
  std::vector<float> forwardOutput(rows * forwardStride);
  std::vector<float> backwardOutput(parameters.mergesOutputs ? 0 : rows * backwardStride);
  runLstm(&forwardCell, parameters.shape, false, input.data(), forward.inputSize, aux,
          forward.auxSize, forward.outputSize, forwardOutput.data(), forwardStride);
  runLstm(&backwardCell, parameters.shape, true,
          parameters.backwardReadsAux ? aux : input.data(), backward.inputSize, aux,
          backward.auxSize, backward.outputSize,
          parameters.mergesOutputs ? forwardOutput.data() + forward.outputSize
                                   : backwardOutput.data(),
          backwardStride);
  storeReal(context, 0, forwardOutput);
  size_t next = 1;
  if (!parameters.mergesOutputs) storeReal(context, next++, backwardOutput);
  storeReal(context, next, forwardCell.outputStates());
  storeReal(context, next + 1, forwardCell.cellStates());
  storeReal(context, next + 2, backwardCell.outputStates());
  storeReal(context, next + 3, backwardCell.cellStates());
  return {};
}

}  // namespace

const OperationDefinition kBidirectionalSequenceLstmOperation = {
    OperationType::kBidirectionalSequenceLstm, validate, prepare, execute};

}  // namespace hearth::ops
