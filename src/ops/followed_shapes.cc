// SPDX-License-Identifier: Apache-2.0
#include "ops/followed_shapes.h"

#include <string>

#include "base/format.h"
#include "ops/following.h"
#include "ops/quantized_sequence_lstm.h"

namespace hearth::ops {
namespace {

std::string nameOf(const OperationContext& context, size_t input) {
  const std::string& name = context.inputs[input].operand->name;
  return name.empty() ? base::formatText("{}", input) : base::formatText("\"{}\"", name);
}

}  // namespace

std::unexpected<Error> refuseToFollow(const OperationContext& context,
                                      std::span<const FollowedTensor> inputs,
                                      std::string_view why) {
  return fail(ErrorCode::kUnsupported, "{} cannot follow: {}, {}.", context.describe(),
              describeChange(context, inputs), why);
}

std::unexpected<Error> refuseMixing(const OperationContext& context,
                                    std::span<const FollowedTensor> inputs) {
  return refuseToFollow(context, inputs,
                        "and the operation may mix what lies along the dimension that was 1");
}

Result<std::optional<size_t>> batchOfStates(const OperationContext& context) {
  const auto batchOf = [&](size_t timeMajor) -> Result<std::optional<size_t>> {
    HEARTH_ASSIGN(const bool isTimeMajor, context.scalar<bool>(timeMajor, false));
    return isTimeMajor ? 1 : 0;
  };
  switch (context.operation->type) {
    case OperationType::kLstm:
    case OperationType::kRnn:
    case OperationType::kSvdf:
    case OperationType::kQuantizedLstm:
    case OperationType::kQuantized16bitLstm:
      return 0;
    case OperationType::kUnidirectionalSequenceLstm:
      return batchOf(23);
    case OperationType::kBidirectionalSequenceLstm:
      return batchOf(52);
    case OperationType::kBidirectionalSequenceRnn:
      return batchOf(13);
    case OperationType::kQuantizedSequenceLstm:
      return batchOf(quantized_sequence_lstm::kTimeMajor);
    case OperationType::kUnidirectionalSequenceRnn: {
      HEARTH_ASSIGN(const int32_t timeMajor, context.scalar<int32_t>(6, 0));
      return timeMajor != 0 ? 1 : 0;
    }
    default:
      return std::nullopt;
  }
}

std::string describeChange(const OperationContext& context,
                           std::span<const FollowedTensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].isChanged())
      return base::formatText("its input {} is {} in place of {}", nameOf(context, i),
                              graph::describeDimensions(inputs[i].now),
                              graph::describeDimensions(inputs[i].before));
  return "its inputs are as in the file";
}

}  // namespace hearth::ops
