// SPDX-License-Identifier: Apache-2.0
#include "ops/bidirectional_sequence.h"
#include "ops/lstm_cell.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr size_t kAuxInput = 39;
constexpr LstmLayout layoutOf(size_t weights, size_t states, size_t layerNorm, size_t auxWeights) {
  return {.weights = weights,
          .outputState = states,
          .cellState = states + 1,
          .layerNorm = layerNorm,
          .auxInput = kAuxInput,
          .auxWeights = auxWeights};
}
constexpr LstmLayout kForward = layoutOf(1, 35, 53, 40);
constexpr LstmLayout kBackward = layoutOf(18, 37, 57, 44);
constexpr BidirectionalLayout kSequence = {.auxInput = kAuxInput,
                                           // The forget gate's; the input gate's may be omitted.
                                           .auxWeights = kForward.auxWeights + 1,
                                           .activation = 48,
                                           .timeMajor = 52,
                                           .mergeOutputs = 51};

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(61, 61, 1, 6));
  HEARTH_TRY(validateBidirectional(signature, kSequence));
  HEARTH_TRY(validateLstm(signature, kForward));
  HEARTH_TRY(validateLstm(signature, kBackward));
  HEARTH_TRY(signature.floatScalar(kSequence.activation + 1, 0));
  return signature.floatScalar(kSequence.activation + 2, 0);
}

struct Parameters {
  BidirectionalParameters sequence;
  LstmParameters forward;
  LstmParameters backward;
};

Result<Parameters> parse(const OperationContext& context) {
  Parameters parameters;
  BidirectionalParameters& sequence = parameters.sequence;
  HEARTH_ASSIGN(sequence, parseBidirectional(context, kSequence));
  const uint32_t batches = sequence.shape.batches;
  HEARTH_ASSIGN(parameters.forward, parseLstm(context, kForward, sequence.inputSize, batches));
  HEARTH_ASSIGN(parameters.backward, parseLstm(context, kBackward, sequence.backwardSize, batches));
  HEARTH_TRY(parseLstmScalars(context, kSequence.activation, &parameters.forward));
  HEARTH_TRY(parseLstmScalars(context, kSequence.activation, &parameters.backward));
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const uint32_t batches = parameters.sequence.shape.batches;
  const LstmParameters& forward = parameters.forward;
  const LstmParameters& backward = parameters.backward;
  HEARTH_ASSIGN(const size_t next, setSequenceDimensions(context, parameters.sequence,
                                                         forward.outputSize, backward.outputSize));
  HEARTH_TRY(context.setOutputDimensions(next, {batches, forward.outputSize}));
  HEARTH_TRY(context.setOutputDimensions(next + 1, {batches, forward.unitCount}));
  HEARTH_TRY(context.setOutputDimensions(next + 2, {batches, backward.outputSize}));
  return context.setOutputDimensions(next + 3, {batches, backward.unitCount});
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const LstmParameters& forward = parameters.forward;
  const LstmParameters& backward = parameters.backward;
  const SequenceShape& shape = parameters.sequence.shape;
  BidirectionalValues values(context, kSequence, parameters.sequence, forward.outputSize,
                             backward.outputSize);
  LstmCell forwardCell(context, kForward, forward);
  LstmCell backwardCell(context, kBackward, backward);
  runLstm(&forwardCell, shape, false, values.forwardInput(), forward.inputSize, values.aux(),
          forward.auxSize, forward.outputSize, values.forwardOutput(), values.forwardStride());
  runLstm(&backwardCell, shape, true, values.backwardInput(), backward.inputSize, values.aux(),
          backward.auxSize, backward.outputSize, values.backwardOutput(), values.backwardStride());
  const size_t next = values.store(context);
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
