// SPDX-License-Identifier: Apache-2.0
// SVDF: a fully connected layer whose weights are products of a feature and a time factor. The
// state holds, for each batch element and filter, the last `memory` feature products. As NNAPI's
// conformance vectors have it, a call puts its products into the last column, which it finds zero,
// and leaves the state moved on by one.
#include <algorithm>
#include <vector>

#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/recurrent_activation.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kInput, kFeatureWeights, kTimeWeights, kBias, kState, kRank, kActivation };

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(7, 2));
  HEARTH_TRY(signature.inputType(kInput, kFloatTensors));
  for (const size_t i : {kFeatureWeights, kTimeWeights, kState})
    HEARTH_TRY(signature.inputTypeLike(i, kInput));
  for (const size_t i : {kInput, kFeatureWeights, kTimeWeights, kState})
    HEARTH_TRY(signature.inputRank(i, 2, 2));
  HEARTH_TRY(signature.optionalInputTypeLike(kBias, kInput));
  HEARTH_TRY(signature.inputType(kRank, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(kActivation, OperandType::kInt32));
  HEARTH_TRY(signature.outputTypeLike(0, kInput));
  return signature.outputTypeLike(1, kInput);
}

struct Parameters {
  uint32_t batches = 0;
  uint32_t inputSize = 0;
  uint32_t filters = 0;  // units * rank
  uint32_t units = 0;
  uint32_t rank = 0;
  uint32_t memory = 0;
  RecurrentActivation activation = RecurrentActivation::kNone;
};

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 0));
  for (const size_t i : {kInput, kFeatureWeights, kTimeWeights, kState}) {
    if (!context.hasInput(i))
      return fail(ErrorCode::kBadData, "{} lacks its input {}.", context.describe(),
                  static_cast<size_t>(i));
    HEARTH_TRY(requireRank(context, i, 2, 2));
  }
  Parameters parameters;
  parameters.batches = context.inputs[kInput].dimensions[0];
  parameters.inputSize = context.inputs[kInput].dimensions[1];
  parameters.filters = context.inputs[kFeatureWeights].dimensions[0];
  parameters.memory = context.inputs[kTimeWeights].dimensions[1];
  HEARTH_ASSIGN(const int32_t rank, context.scalar<int32_t>(kRank));
  if (rank < 1 || parameters.filters % static_cast<uint32_t>(rank) != 0)
    return fail(ErrorCode::kBadData, "{} has the rank {}, which does not divide its {} filters.",
                context.describe(), rank, parameters.filters);
  parameters.rank = static_cast<uint32_t>(rank);
  parameters.units = parameters.filters / parameters.rank;
  HEARTH_ASSIGN(parameters.activation, parseRecurrentActivation(context, kActivation));
  const auto requireShape = [&](size_t index, const Dimensions& expected) -> Status {
    if (!isGiven(context, index) || context.inputs[index].dimensions == expected) return {};
    return fail(ErrorCode::kBadData, "Input {} of {} has the shape {}, it must be {}.", index,
                context.describe(), graph::describeDimensions(context.inputs[index].dimensions),
                graph::describeDimensions(expected));
  };
  const uint64_t stateSize = uint64_t{parameters.filters} * parameters.memory;
  if (parameters.memory == 0 || stateSize > UINT32_MAX)
    return fail(ErrorCode::kBadData, "{} has {} filters with a memory of {}.", context.describe(),
                parameters.filters, parameters.memory);
  HEARTH_TRY(requireShape(kFeatureWeights, {parameters.filters, parameters.inputSize}));
  HEARTH_TRY(requireShape(kTimeWeights, {parameters.filters, parameters.memory}));
  HEARTH_TRY(requireShape(kBias, {parameters.units}));
  const Dimensions state = {parameters.batches, static_cast<uint32_t>(stateSize)};
  if (context.inputs[kState].dimensions != state)
    return fail(ErrorCode::kBadData, "The state of {} has the shape {}, it must be {}.",
                context.describe(), graph::describeDimensions(context.inputs[kState].dimensions),
                graph::describeDimensions(state));
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  HEARTH_TRY(context.setOutputDimensions(0, context.inputs[kState].dimensions));
  return context.setOutputDimensions(1, {parameters.batches, parameters.units});
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const RealInput input(context.inputs[kInput]);
  const RealInput featureWeights(context.inputs[kFeatureWeights]);
  const RealInput timeWeights(context.inputs[kTimeWeights]);
  const RealInput oldState(context.inputs[kState]);
  const size_t memory = parameters.memory;
  std::vector<float> state(oldState.begin(), oldState.end());
  std::vector<float> output(size_t{parameters.batches} * parameters.units, 0.0f);
  if (isGiven(context, kBias)) {
    const RealInput bias(context.inputs[kBias]);
    for (size_t b = 0; b < parameters.batches; ++b)
      std::copy(bias.begin(), bias.end(), output.begin() + static_cast<ptrdiff_t>(b * bias.size()));
  }
  for (size_t b = 0; b < parameters.batches; ++b) {
    for (size_t f = 0; f < parameters.filters; ++f) {
      float* history = state.data() + (b * parameters.filters + f) * memory;
      history[memory - 1] =
          dotProduct(featureWeights.data() + f * parameters.inputSize,
                     input.data() + b * parameters.inputSize, parameters.inputSize);
      output[b * parameters.units + f / parameters.rank] +=
          dotProduct(timeWeights.data() + f * memory, history, memory);
      std::copy(history + 1, history + memory, history);
      history[memory - 1] = 0.0f;
    }
  }
  applyActivation(parameters.activation, output.data(), output.size());
  storeReal(context, 0, state);
  storeReal(context, 1, output);
  return {};
}

}  // namespace

const OperationDefinition kSvdfOperation = {OperationType::kSvdf, validate, prepare, execute};

}  // namespace hearth::ops
