// SPDX-License-Identifier: Apache-2.0
// CHANNEL_SHUFFLE: reshapes the dimension of an axis to [groups, size] and transposes it to [size,
// groups]. Inputs: data, number of groups, axis.
#include <cstring>

#include "ops/axis_rows.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

struct Parameters {
  size_t groups = 1;
  size_t axis = 0;
};

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputType(0, kFloatTensors | kQuant8Tensors));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(2, OperandType::kInt32));
  HEARTH_TRY(signature.inputRank(0, 1, kMaximumRank));
  return signature.outputLike(0, 0);
}

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  HEARTH_ASSIGN(const int32_t groups, context.scalar<int32_t>(1));
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(2));
  Parameters p;
  HEARTH_ASSIGN(p.axis, resolveAxis(context, axis, context.inputs[0].rank()));
  const uint32_t size = context.inputs[0].dimensions[p.axis];
  if (groups <= 0 || size % static_cast<uint32_t>(groups) != 0)
    return fail(ErrorCode::kBadData, "{} has {} groups for a dimension of {}.", context.describe(),
                groups, size);
  p.groups = static_cast<size_t>(groups);
  return p;
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters p, parse(context));
  const size_t element = graph::elementSize(context.inputs[0].type());
  const uint8_t* input = context.inputs[0].as<uint8_t>();
  uint8_t* output = context.outputs[0].as<uint8_t>();
  forEachAxisRow(context.inputs[0].dimensions, p.axis, [&](const AxisRow& row) {
    const size_t groupSize = row.size / p.groups;
    for (size_t group = 0; group < p.groups; ++group) {
      for (size_t i = 0; i < groupSize; ++i)
        std::memcpy(output + row.index(i * p.groups + group) * element,
                    input + row.index(group * groupSize + i) * element, element);
    }
  });
  return {};
}

}  // namespace

const OperationDefinition kChannelShuffleOperation = {OperationType::kChannelShuffle, validate,
                                                      prepareLikeInput<parse>, execute};

}  // namespace hearth::ops
