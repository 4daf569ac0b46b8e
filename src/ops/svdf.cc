// SPDX-License-Identifier: Apache-2.0
// SVDF: a fully connected layer whose weights are products of a feature and a time factor. The
// state holds, for each batch element and filter, the last `memory` feature products. As NNAPI's
// conformance vectors have it, a call puts its products into the last column, which it finds zero,
// and leaves the state moved on by one.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/vector_dispatch.h"
#include "ops/dot_product.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/recurrent_activation.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kInput, kFeatureWeights, kTimeWeights, kBias, kState, kRank, kActivation };

Status validate(const Signature& signature) {
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
  const uint64_t stateSize = uint64_t{parameters.filters} * parameters.memory;
  if (parameters.memory == 0 || stateSize > UINT32_MAX)
    return fail(ErrorCode::kBadData, "{} has {} filters with a memory of {}.", context.describe(),
                parameters.filters, parameters.memory);
  HEARTH_TRY(
      requireGivenShape(context, kFeatureWeights, {parameters.filters, parameters.inputSize}));
  HEARTH_TRY(requireGivenShape(context, kTimeWeights, {parameters.filters, parameters.memory}));
  HEARTH_TRY(requireGivenShape(context, kBias, {parameters.units}));
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

// What one filter works with.
struct Filter {
  const float* featureWeights;
  const float* timeWeights;
  const float* oldHistory;
  float* history;
};

// Moves the filter's history on by one, and returns what it adds to its unit.
HEARTH_INLINE inline float advance(const Filter& f, const float* input, size_t inputSize,
                                   size_t memory) {
  const float feature = dotProductInline(f.featureWeights, input, inputSize);
  // The newest product is not in memory yet: it comes last.
  const float sum = dotProductInline(f.timeWeights, f.oldHistory, memory - 1);
#pragma GCC ivdep
  for (size_t i = 1; i + 1 < memory; ++i) f.history[i - 1] = f.oldHistory[i];
  if (memory > 1) f.history[memory - 2] = feature;
  f.history[memory - 1] = 0.0f;
  return sum + f.timeWeights[memory - 1] * feature;
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const RealInput input(context.inputs[kInput]);
  const RealInput featureWeights(context.inputs[kFeatureWeights]);
  const RealInput timeWeights(context.inputs[kTimeWeights]);
  const RealInput oldState(context.inputs[kState]);
  std::vector<float> ownState;
  std::optional<RealOutput> givenState;
  if (context.hasOutput(0))
    givenState.emplace(context.outputs[0]);
  else
    ownState.resize(oldState.size());
  float* state = givenState ? givenState->data() : ownState.data();
  std::vector<float> output(size_t{parameters.batches} * parameters.units, 0.0f);
  if (isGiven(context, kBias)) {
    const RealInput bias(context.inputs[kBias]);
    for (size_t b = 0; b < parameters.batches; ++b)
      std::copy(bias.begin(), bias.end(), output.begin() + static_cast<ptrdiff_t>(b * bias.size()));
  }
  const uint64_t units = output.size();
  const size_t memory = parameters.memory;
  const size_t inputSize = parameters.inputSize;
  const size_t rank = parameters.rank;
  const uint64_t bytesOfUnit = rank * (memory + inputSize) * sizeof(float);
  threads::forRanges(
      context.threadPool, units, threads::grainOf(bytesOfUnit), [&](uint64_t begin, uint64_t end) {
        const float* rows = input.data();
        const float* features = featureWeights.data();
        const float* times = timeWeights.data();
        const float* old = oldState.data();
        float* sums = output.data();
        const size_t unitsOfBatch = parameters.units;
        base::onWidestVectors([=]() HEARTH_INLINE {
          for (uint64_t unit = begin; unit < end; ++unit) {
            const uint64_t batch = unit / unitsOfBatch;
            for (size_t r = 0; r < rank; ++r) {
              const uint64_t filter = unit % unitsOfBatch * rank + r;
              const uint64_t place = (unit * rank + r) * memory;
              sums[unit] += advance({features + filter * inputSize, times + filter * memory,
                                     old + place, state + place},
                                    rows + batch * inputSize, inputSize, memory);
            }
          }
        });
      });
  if (givenState) givenState->store();
  applyActivation(parameters.activation, output.data(), output.size());
  storeReal(context, 1, output);
  return {};
}

}  // namespace

const OperationDefinition kSvdfOperation = {OperationType::kSvdf, validate, prepare, execute};

}  // namespace hearth::ops
