// SPDX-License-Identifier: Apache-2.0
// SVDF: a fully connected layer whose weights are products of a feature and a time factor. The
// state holds, for each batch element and filter, the last `memory` feature products. As in NNAPI's
// conformance vectors, a call writes its products to the last column, which is zero before, and
// leaves the state shifted by one column.
//
// .tflite files have it in integers too: int8 data, features and output, a 16-bit state and time
// weights, all weights and the state with zero point 0, and an int32 bias. Each product of features
// is rescaled to a step of the state, each unit's sum over time to a step of the output. The
// activation is RELU and does nothing: the range of the output is to express it.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/vector_dispatch.h"
#include "ops/dot_product.h"
#include "ops/fixed_point.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/recurrent_activation.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kInput, kFeatureWeights, kTimeWeights, kBias, kState, kRank, kActivation };

Status validateIntegers(const Signature& signature) {
  constexpr TypeSet kFeatures =
      OperandType::kTensorQuant8AsymmSigned | OperandType::kTensorQuant8Symm;
  HEARTH_TRY(signature.inputType(kFeatureWeights, kFeatures));
  if (signature.input(kFeatureWeights).zeroPoint != 0)
    return fail(ErrorCode::kBadData, "The feature weights of {} have the zero point {}.",
                signature.describe(), signature.input(kFeatureWeights).zeroPoint);
  HEARTH_TRY(signature.inputType(kTimeWeights, OperandType::kTensorQuant16Symm));
  HEARTH_TRY(signature.inputType(kState, OperandType::kTensorQuant16Symm));
  HEARTH_TRY(signature.optionalInputType(kBias, OperandType::kTensorInt32));
  HEARTH_TRY(signature.outputLike(0, kState));
  return signature.outputType(1, OperandType::kTensorQuant8AsymmSigned);
}

Status validateFloats(const Signature& signature) {
  HEARTH_TRY(signature.inputType(kInput, kFloatTensors));
  for (const size_t i : {kFeatureWeights, kTimeWeights, kState})
    HEARTH_TRY(signature.inputTypeLike(i, kInput));
  HEARTH_TRY(signature.optionalInputTypeLike(kBias, kInput));
  HEARTH_TRY(signature.outputTypeLike(0, kInput));
  return signature.outputTypeLike(1, kInput);
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(7, 2));
  HEARTH_TRY(signature.inputType(kInput, kFloatTensors | OperandType::kTensorQuant8AsymmSigned));
  HEARTH_TRY(signature.isInputOfType(kInput, kFloatTensors) ? validateFloats(signature)
                                                            : validateIntegers(signature));
  for (const size_t i : {kInput, kFeatureWeights, kTimeWeights, kState})
    HEARTH_TRY(signature.inputRank(i, 2, 2));
  HEARTH_TRY(signature.inputType(kRank, OperandType::kInt32));
  return signature.inputType(kActivation, OperandType::kInt32);
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
  if (!kFloatTensors.contains(context.inputs[kInput].type()) &&
      parameters.activation != RecurrentActivation::kRelu)
    return fail(ErrorCode::kBadData, "The activation of {} in integers is {}, it must be RELU.",
                context.describe(), static_cast<int32_t>(parameters.activation));
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

// The weights and the state of one filter.
struct Filter {
  const float* featureWeights;
  const float* timeWeights;
  const float* oldHistory;
  float* history;
};

// Shifts the filter's history by one and returns the filter's contribution to its unit.
HEARTH_INLINE inline float advance(const Filter& f, const float* input, size_t inputSize,
                                   size_t memory) {
  const float feature = dotProductInline(f.featureWeights, input, inputSize);
  // The newest product is added last; it is not in memory yet.
  const float sum = dotProductInline(f.timeWeights, f.oldHistory, memory - 1);
#pragma GCC ivdep
  for (size_t i = 1; i + 1 < memory; ++i) f.history[i - 1] = f.oldHistory[i];
  if (memory > 1) f.history[memory - 2] = feature;
  f.history[memory - 1] = 0.0f;
  return sum + f.timeWeights[memory - 1] * feature;
}

// Sums wrap, as TFLite's do.
template <typename Weight, typename Value>
int32_t wrappingDot(const Weight* weights, const Value* values, size_t count) {
  uint32_t result = 0;
  base::onWidestVectors([&]() HEARTH_INLINE {
    uint32_t sum = 0;
    for (size_t i = 0; i < count; ++i)
      sum += static_cast<uint32_t>(int32_t{weights[i]} * int32_t{values[i]});
    result = sum;
  });
  return static_cast<int32_t>(result);
}

float scaleOf(const Tensor& tensor) {
  return tensor.operand->scale;
}

Status executeOnIntegers(const OperationContext& context, const Parameters& parameters) {
  const Tensor& input = context.inputs[kInput];
  const Tensor& output = context.outputs[1];
  const size_t memory = parameters.memory;
  const size_t inputSize = parameters.inputSize;
  // Computed in float, as TFLite does: the multipliers depend on the last bit.
  const FixedMultiplier toState = toFixedMultiplier(static_cast<double>(
      scaleOf(input) * scaleOf(context.inputs[kFeatureWeights]) / scaleOf(context.inputs[kState])));
  const FixedMultiplier toOutput = toFixedMultiplier(static_cast<double>(
      scaleOf(context.inputs[kState]) * scaleOf(context.inputs[kTimeWeights]) / scaleOf(output)));
  const int8_t* features = context.inputs[kFeatureWeights].as<int8_t>();
  const int16_t* times = context.inputs[kTimeWeights].as<int16_t>();
  const int32_t* bias = isGiven(context, kBias) ? context.inputs[kBias].as<int32_t>() : nullptr;
  const int16_t* oldState = context.inputs[kState].as<int16_t>();
  int16_t* newState = context.hasOutput(0) ? context.outputs[0].as<int16_t>() : nullptr;
  std::vector<int16_t> centred(input.elementCount());
  for (size_t i = 0; i < centred.size(); ++i)
    centred[i] = static_cast<int16_t>(input.as<int8_t>()[i] - input.operand->zeroPoint);
  const auto computeUnit = [&](uint64_t unit, std::vector<int16_t>* history) {
    const uint64_t batch = unit / parameters.units;
    const uint64_t unitOfBatch = unit % parameters.units;
    uint32_t sum = bias == nullptr ? 0 : static_cast<uint32_t>(bias[unitOfBatch]);
    for (size_t r = 0; r < parameters.rank; ++r) {
      const uint64_t filter = unitOfBatch * parameters.rank + r;
      const uint64_t place = (unit * parameters.rank + r) * memory;
      std::copy_n(oldState + place, memory, history->begin());
      const int32_t product =
          wrappingDot(features + filter * inputSize, centred.data() + batch * inputSize, inputSize);
      history->back() = static_cast<int16_t>(std::clamp(multiply(product, toState), -32768, 32767));
      sum += static_cast<uint32_t>(wrappingDot(times + filter * memory, history->data(), memory));
      if (newState == nullptr) continue;
      std::copy(history->begin() + 1, history->end(), newState + place);
      newState[place + memory - 1] = 0;
    }
    if (!context.hasOutput(1)) return;
    const int64_t value =
        int64_t{multiply(static_cast<int32_t>(sum), toOutput)} + output.operand->zeroPoint;
    output.as<int8_t>()[unit] = static_cast<int8_t>(std::clamp<int64_t>(value, -128, 127));
  };
  const uint64_t bytesOfUnit = parameters.rank * (2 * memory + inputSize);
  const uint64_t units = uint64_t{parameters.batches} * parameters.units;
  threads::forRanges(context.threadPool, units, threads::grainOf(bytesOfUnit),
                     [&](uint64_t begin, uint64_t end) {
                       std::vector<int16_t> history(memory);
                       for (uint64_t unit = begin; unit < end; ++unit) computeUnit(unit, &history);
                     });
  return {};
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  if (!kFloatTensors.contains(context.inputs[kInput].type()))
    return executeOnIntegers(context, parameters);
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
