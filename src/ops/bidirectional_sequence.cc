// SPDX-License-Identifier: Apache-2.0
#include "ops/bidirectional_sequence.h"

#include <utility>

#include "ops/recurrent_activation.h"

namespace hearth::ops {

Status validateBidirectional(const Signature& signature, const BidirectionalLayout& layout) {
  HEARTH_TRY(signature.inputTensor(0, kFloatTensors, 3, 3));
  HEARTH_TRY(signature.optionalInputTypeLike(layout.auxInput, 0));
  HEARTH_TRY(signature.inputType(layout.activation, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(layout.timeMajor, OperandType::kBool));
  HEARTH_TRY(signature.inputType(layout.mergeOutputs, OperandType::kBool));
  for (size_t i = 0; i < signature.outputCount(); ++i) HEARTH_TRY(signature.outputTypeLike(i, 0));
  return {};
}

Result<BidirectionalParameters> parseBidirectional(const OperationContext& context,
                                                   const BidirectionalLayout& layout) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, 0, 3, 3));
  const Dimensions& input = context.inputs[0].dimensions;
  BidirectionalParameters parameters;
  HEARTH_ASSIGN(const bool isTimeMajor, context.scalar<bool>(layout.timeMajor));
  HEARTH_ASSIGN(parameters.mergesOutputs, context.scalar<bool>(layout.mergeOutputs));
  parameters.shape = SequenceShape::of(input, isTimeMajor);
  parameters.inputSize = parameters.backwardSize = input[2];
  if (isGiven(context, layout.auxInput)) {
    const Dimensions& aux = context.inputs[layout.auxInput].dimensions;
    if (aux.size() != 3 || aux[0] != input[0] || aux[1] != input[1])
      return fail(ErrorCode::kBadData, "The auxiliary input of {} has the shape {}, the input {}.",
                  context.describe(), graph::describeDimensions(aux),
                  graph::describeDimensions(input));
    parameters.auxSize = aux[2];
    parameters.backwardReadsAux = !isGiven(context, layout.auxWeights);
    if (parameters.backwardReadsAux) parameters.backwardSize = aux[2];
  }
  return parameters;
}

Result<size_t> setSequenceDimensions(OperationContext& context,
                                     const BidirectionalParameters& parameters,
                                     uint32_t forwardSize, uint32_t backwardSize) {
  const uint64_t merged = uint64_t{forwardSize} + backwardSize;
  if (merged > UINT32_MAX)
    return fail(ErrorCode::kBadData, "{} has {} outputs.", context.describe(), merged);
  Dimensions output = context.inputs[0].dimensions;
  output[2] = parameters.mergesOutputs ? static_cast<uint32_t>(merged) : forwardSize;
  HEARTH_TRY(context.setOutputDimensions(0, output));
  if (parameters.mergesOutputs) return 1;
  output[2] = backwardSize;
  HEARTH_TRY(context.setOutputDimensions(1, std::move(output)));
  return 2;
}

BidirectionalValues::BidirectionalValues(const OperationContext& context,
                                         const BidirectionalLayout& layout,
                                         const BidirectionalParameters& parameters,
                                         uint32_t forwardSize, uint32_t backwardSize)
    : parameters_(parameters),
      forwardSize_(forwardSize),
      forwardStride_(size_t{forwardSize} + (parameters.mergesOutputs ? backwardSize : 0)),
      backwardStride_(parameters.mergesOutputs ? forwardStride_ : backwardSize),
      input_(context.inputs[0]) {
  if (isGiven(context, layout.auxInput))
    aux_ = std::make_unique<RealInput>(context.inputs[layout.auxInput]);
  const size_t rows = size_t{parameters.shape.batches} * parameters.shape.steps;
  forward_.resize(rows * forwardStride_);
  if (!parameters.mergesOutputs) backward_.resize(rows * backwardStride_);
}

size_t BidirectionalValues::store(OperationContext& context) const {
  storeReal(context, 0, forward_);
  if (parameters_.mergesOutputs) return 1;
  storeReal(context, 1, backward_);
  return 2;
}

}  // namespace hearth::ops
