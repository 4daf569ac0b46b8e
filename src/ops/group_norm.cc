// SPDX-License-Identifier: Apache-2.0
// GROUP_NORM of the extension: divides the channels of each batch element into groups of neighbours
// and normalises each group, over all positions, to mean 0 and variance 1. Inputs: data, scale and
// offset (one element for each channel; may be omitted), epsilon, INT32 number of groups, INT32
// dimension of the channels (not 0, which counts batch elements).
#include "ops/group_norm.h"

#include <cmath>

#include "ops/elementwise.h"
#include "ops/registry.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kData, kScale, kOffset, kEpsilon, kGroups, kAxis, kInputCount };

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kInputCount, 1));
  HEARTH_TRY(validateElementwise(signature, kFloatTensors));
  HEARTH_TRY(signature.inputRank(kData, 2, kMaximumRank));
  HEARTH_TRY(signature.optionalInputTypeLike(kScale, kData));
  HEARTH_TRY(signature.optionalInputTypeLike(kOffset, kData));
  HEARTH_TRY(signature.floatScalar(kEpsilon, kData));
  HEARTH_TRY(signature.inputType(kGroups, OperandType::kInt32));
  return signature.inputType(kAxis, OperandType::kInt32);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(parseGroupNorm(context));
  return context.setOutputDimensions(0, context.inputs[kData].dimensions);
}

std::vector<float> valuesOr(const OperationContext& context, size_t index, size_t count,
                            float fallback) {
  if (!context.hasInput(index)) return std::vector<float>(count, fallback);
  const RealInput given(context.inputs[index]);
  return {given.begin(), given.end()};
}

// Calls visit(flat index, channel) for each element of a group.
template <typename Visit>
void forEachOfGroup(const GroupNormParameters& p, size_t batch, size_t group, const Visit& visit) {
  for (size_t o = 0; o < p.outer; ++o) {
    for (size_t c = group * p.groupChannels; c < (group + 1) * p.groupChannels; ++c) {
      const size_t first = ((batch * p.outer + o) * p.channels() + c) * p.inner;
      for (size_t i = 0; i < p.inner; ++i) visit(first + i, c);
    }
  }
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const GroupNormParameters p, parseGroupNorm(context));
  const RealInput input(context.inputs[kData]);
  if (input.size() == 0) return {};  // there may be any number of empty groups
  const std::vector<float> scale = valuesOr(context, kScale, p.channels(), 1.0f);
  const std::vector<float> offset = valuesOr(context, kOffset, p.channels(), 0.0f);
  RealOutput output(context.outputs[0]);
  const double count = static_cast<double>(p.outer * p.groupChannels * p.inner);
  for (size_t b = 0; b < p.batches; ++b) {
    for (size_t group = 0; group < p.groups; ++group) {
      double sum = 0.0;
      forEachOfGroup(p, b, group, [&](size_t index, size_t) { sum += input[index]; });
      const double mean = sum / count;
      double squares = 0.0;
      forEachOfGroup(p, b, group, [&](size_t index, size_t) {
        squares += (input[index] - mean) * (input[index] - mean);
      });
      const double factor = 1.0 / std::sqrt(squares / count + p.epsilon);
      forEachOfGroup(p, b, group, [&](size_t index, size_t channel) {
        output[index] =
            static_cast<float>((input[index] - mean) * factor) * scale[channel] + offset[channel];
      });
    }
  }
  output.store();
  return {};
}

}  // namespace

Result<GroupNormParameters> parseGroupNorm(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, kData, 2, kMaximumRank));
  const Dimensions& data = context.inputs[kData].dimensions;
  GroupNormParameters p;
  HEARTH_ASSIGN(p.epsilon, floatScalar(context, kEpsilon));
  HEARTH_ASSIGN(const int32_t groups, context.scalar<int32_t>(kGroups));
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(kAxis));
  HEARTH_ASSIGN(const size_t channelAxis, resolveAxis(context, axis, data.size()));
  const uint32_t channels = data[channelAxis];
  if (channelAxis == 0 || groups <= 0 || channels % static_cast<uint32_t>(groups) != 0)
    return fail(ErrorCode::kBadData, "{} has {} groups along dimension {} of {}.",
                context.describe(), groups, channelAxis, graph::describeDimensions(data));
  p.batches = data[0];
  for (size_t i = 1; i < channelAxis; ++i) p.outer *= data[i];
  for (size_t i = channelAxis + 1; i < data.size(); ++i) p.inner *= data[i];
  p.groups = static_cast<size_t>(groups);
  p.groupChannels = channels / p.groups;
  for (const size_t i : {kScale, kOffset})
    if (context.hasInput(i) && context.inputs[i].elementCount() != channels)
      return fail(ErrorCode::kBadData, "Input {} of {} is {}, there are {} channels.",
                  static_cast<size_t>(i), context.describe(),
                  graph::describeDimensions(context.inputs[i].dimensions), channels);
  return p;
}

const OperationDefinition kGroupNormOperation = {OperationType::kGroupNorm, validate, prepare,
                                                 execute};

}  // namespace hearth::ops
