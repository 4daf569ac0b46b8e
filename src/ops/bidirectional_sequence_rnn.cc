// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/bidirectional_sequence.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/rnn_cell.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr size_t kAuxInput = 9;
constexpr RnnLayout kForward = {.weights = 1, .auxWeights = 10};
constexpr RnnLayout kBackward = {.weights = 5, .auxWeights = 11};
constexpr BidirectionalLayout kSequence = {.auxInput = kAuxInput,
                                           .auxWeights = kForward.auxWeights,
                                           .activation = 12,
                                           .timeMajor = 13,
                                           .mergeOutputs = 14};

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(15, 15, 1, 4));
  HEARTH_TRY(validateBidirectional(signature, kSequence));
  HEARTH_TRY(validateRnn(signature, kForward));
  return validateRnn(signature, kBackward);
}

struct Parameters {
  BidirectionalParameters sequence;
  RnnParameters forward;
  RnnParameters backward;
};

Result<Parameters> parse(const OperationContext& context) {
  Parameters parameters;
  BidirectionalParameters& sequence = parameters.sequence;
  HEARTH_ASSIGN(sequence, parseBidirectional(context, kSequence));
  const bool hasAuxWeights = isGiven(context, kForward.auxWeights);
  if (hasAuxWeights != isGiven(context, kBackward.auxWeights) ||
      (hasAuxWeights && !isGiven(context, kAuxInput)))
    return fail(ErrorCode::kBadData,
                "{} has one of the auxiliary input and its two weights without the others.",
                context.describe());
  const uint32_t auxSize = hasAuxWeights ? sequence.auxSize : 0;
  const uint32_t batches = sequence.shape.batches;
  HEARTH_ASSIGN(parameters.forward,
                parseRnn(context, kForward, sequence.inputSize, auxSize, batches));
  HEARTH_ASSIGN(parameters.backward,
                parseRnn(context, kBackward, sequence.backwardSize, auxSize, batches));
  HEARTH_ASSIGN(parameters.forward.activation,
                parseRecurrentActivation(context, kSequence.activation));
  parameters.backward.activation = parameters.forward.activation;
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const uint32_t batches = parameters.sequence.shape.batches;
  HEARTH_ASSIGN(const size_t next,
                setSequenceDimensions(context, parameters.sequence, parameters.forward.unitCount,
                                      parameters.backward.unitCount));
  HEARTH_TRY(context.setOutputDimensions(next, {batches, parameters.forward.unitCount}));
  return context.setOutputDimensions(next + 1, {batches, parameters.backward.unitCount});
}

// All steps of one cell.
void runCell(RnnCell* cell, const RnnParameters& parameters, const SequenceShape& shape,
             bool isReversed, const float* input, const float* aux, float* output, size_t stride) {
  forEachStep(shape, isReversed, [&](size_t batch, size_t row) {
    cell->step(batch, input + row * parameters.inputSize,
               aux == nullptr ? nullptr : aux + row * parameters.auxSize);
    std::copy_n(cell->hiddenState(batch), parameters.unitCount, output + row * stride);
  });
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const RnnParameters& forward = parameters.forward;
  const RnnParameters& backward = parameters.backward;
  const SequenceShape& shape = parameters.sequence.shape;
  BidirectionalValues values(context, kSequence, parameters.sequence, forward.unitCount,
                             backward.unitCount);
  RnnCell forwardCell(context, kForward, forward);
  RnnCell backwardCell(context, kBackward, backward);
  runCell(&forwardCell, forward, shape, false, values.forwardInput(), values.aux(),
          values.forwardOutput(), values.forwardStride());
  runCell(&backwardCell, backward, shape, true, values.backwardInput(), values.aux(),
          values.backwardOutput(), values.backwardStride());
  const size_t next = values.store(context);
  storeReal(context, next, forwardCell.hiddenStates());
  storeReal(context, next + 1, backwardCell.hiddenStates());
  return {};
}

}  // namespace

const OperationDefinition kBidirectionalSequenceRnnOperation = {
    OperationType::kBidirectionalSequenceRnn, validate, prepare, execute};

}  // namespace hearth::ops
