// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/rnn_cell.h"
#include "ops/sequence_shape.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr size_t kAuxInput = 9;
constexpr RnnLayout kForward = {.weights = 1, .auxWeights = 10};
constexpr RnnLayout kBackward = {.weights = 5, .auxWeights = 11};
constexpr size_t kActivation = 12;
constexpr size_t kTimeMajor = 13;
constexpr size_t kMergeOutputs = 14;

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(15, 15, 1, 4));
  HEARTH_TRY(signature.inputType(0, kFloatTensors));
  HEARTH_TRY(signature.inputRank(0, 3, 3));
  HEARTH_TRY(validateRnn(signature, kForward));
  HEARTH_TRY(validateRnn(signature, kBackward));
  HEARTH_TRY(signature.optionalInputTypeLike(kAuxInput, 0));
  HEARTH_TRY(signature.inputType(kActivation, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(kTimeMajor, OperandType::kBool));
  HEARTH_TRY(signature.inputType(kMergeOutputs, OperandType::kBool));
  for (size_t i = 0; i < signature.outputCount(); ++i) HEARTH_TRY(signature.outputTypeLike(i, 0));
  return {};
}

struct Parameters {
  RnnParameters forward;
  RnnParameters backward;
  SequenceShape shape;
  bool mergesOutputs = false;
  // Without weights of its own the auxiliary input is what the backward cell reads.
  bool backwardReadsAux = false;
};

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, 0, 3, 3));
  const Dimensions& input = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const bool isTimeMajor, context.scalar<bool>(kTimeMajor));
  Parameters parameters;
  parameters.shape = SequenceShape::of(input, isTimeMajor);
  HEARTH_ASSIGN(parameters.mergesOutputs, context.scalar<bool>(kMergeOutputs));
  const bool hasAux = isGiven(context, kAuxInput);
  const bool hasAuxWeights = isGiven(context, kForward.auxWeights);
  if (hasAuxWeights != isGiven(context, kBackward.auxWeights) || (hasAuxWeights && !hasAux))
    return fail(ErrorCode::kBadData,
                "{} has one of the auxiliary input and its two weights without the others.",
                context.describe());
  uint32_t auxSize = 0;
  uint32_t backwardSize = input[2];
  if (hasAux) {
    const Dimensions& aux = context.inputs[kAuxInput].dimensions;
    if (aux.size() != 3 || aux[0] != input[0] || aux[1] != input[1])
      return fail(ErrorCode::kBadData, "The auxiliary input of {} has the shape {}, the input {}.",
                  context.describe(), graph::describeDimensions(aux),
                  graph::describeDimensions(input));
    parameters.backwardReadsAux = !hasAuxWeights;
    (hasAuxWeights ? auxSize : backwardSize) = aux[2];
  }
  HEARTH_ASSIGN(parameters.forward,
                parseRnn(context, kForward, input[2], auxSize, parameters.shape.batches));
  HEARTH_ASSIGN(parameters.backward,
                parseRnn(context, kBackward, backwardSize, auxSize, parameters.shape.batches));
  HEARTH_ASSIGN(parameters.forward.activation, parseRecurrentActivation(context, kActivation));
  parameters.backward.activation = parameters.forward.activation;
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  Dimensions output = context.inputs[0].dimensions;
  const uint32_t batches = parameters.shape.batches;
  const uint64_t merged = uint64_t{parameters.forward.unitCount} + parameters.backward.unitCount;
  if (merged > UINT32_MAX)
    return fail(ErrorCode::kBadData, "{} has {} units.", context.describe(), merged);
  output[2] =
      parameters.mergesOutputs ? static_cast<uint32_t>(merged) : parameters.forward.unitCount;
  HEARTH_TRY(context.setOutputDimensions(0, output));
  size_t next = 1;
  if (!parameters.mergesOutputs) {
    output[2] = parameters.backward.unitCount;
    HEARTH_TRY(context.setOutputDimensions(next++, std::move(output)));
  }
  HEARTH_TRY(context.setOutputDimensions(next, {batches, parameters.forward.unitCount}));
  return context.setOutputDimensions(next + 1, {batches, parameters.backward.unitCount});
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const RnnParameters& forward = parameters.forward;
  const RnnParameters& backward = parameters.backward;
  const RealInput input(context.inputs[0]);
  std::unique_ptr<RealInput> auxInput;
  if (isGiven(context, kAuxInput))
    auxInput = std::make_unique<RealInput>(context.inputs[kAuxInput]);
  const float* aux = auxInput == nullptr ? nullptr : auxInput->data();
  const auto auxRow = [&](size_t row) {
    return aux == nullptr ? nullptr : aux + row * forward.auxSize;
  };
  RnnCell forwardCell(context, kForward, forward);
  RnnCell backwardCell(context, kBackward, backward);
  const bool merges = parameters.mergesOutputs;
  const size_t rows = size_t{parameters.shape.batches} * parameters.shape.steps;
  const size_t forwardStride = forward.unitCount + (merges ? backward.unitCount : 0);
  const size_t backwardStride = merges ? forwardStride : backward.unitCount;
  std::vector<float> forwardOutput(rows * forwardStride);
  std::vector<float> backwardOutput(merges ? 0 : rows * backwardStride);
  forEachStep(parameters.shape, false, [&](size_t batch, size_t row) {
    forwardCell.step(batch, input.data() + row * forward.inputSize, auxRow(row));
    std::copy_n(forwardCell.hiddenState(batch), forward.unitCount,
                forwardOutput.data() + row * forwardStride);
  });
  const float* backwardInput = parameters.backwardReadsAux ? aux : input.data();
  float* backwardTarget = merges ? forwardOutput.data() + forward.unitCount : backwardOutput.data();
  forEachStep(parameters.shape, true, [&](size_t batch, size_t row) {
    backwardCell.step(batch, backwardInput + row * backward.inputSize, auxRow(row));
    std::copy_n(backwardCell.hiddenState(batch), backward.unitCount,
                backwardTarget + row * backwardStride);
  });
  storeReal(context, 0, forwardOutput);
  size_t next = 1;
  if (!merges) storeReal(context, next++, backwardOutput);
  storeReal(context, next, forwardCell.hiddenStates());
  storeReal(context, next + 1, backwardCell.hiddenStates());
  return {};
}

}  // namespace

const OperationDefinition kBidirectionalSequenceRnnOperation = {
    OperationType::kBidirectionalSequenceRnn, validate, prepare, execute};

}  // namespace hearth::ops
