// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/slice.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

// Masks are INT32 and have a bit for each dimension; the sign bit is not used.
constexpr size_t kMaximumMaskedRank = 31;

// A begin or end as a position: negative ones count from the end; those outside are clamped, in
// walking direction, to the first or last position or one beyond.
int64_t clampPosition(int64_t position, int64_t size, bool forward) {
  if (position < 0) position += size;
  return forward ? std::clamp<int64_t>(position, 0, size)
                 : std::clamp<int64_t>(position, -1, size - 1);
}

int64_t stepCount(int64_t begin, int64_t end, int64_t stride) {
  const int64_t distance = stride > 0 ? end - begin : begin - end;
  const int64_t step = stride > 0 ? stride : -stride;
  return distance <= 0 ? 0 : (distance + step - 1) / step;
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(7, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovedTensors, 1, kMaximumMaskedRank));
  for (const size_t i : {1, 2, 3}) {
    HEARTH_TRY(signature.inputTensor(i, kIndexTensors, 1, 1));
  }
  for (const size_t i : {4, 5, 6}) HEARTH_TRY(signature.inputType(i, OperandType::kInt32));
  return signature.outputLike(0, 0);
}

}  // namespace

Result<SliceParameters> parseStridedSlice(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 7, 1));
  const Dimensions& input = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const std::vector<int64_t> begins, context.intVector(1));
  HEARTH_ASSIGN(const std::vector<int64_t> ends, context.intVector(2));
  HEARTH_ASSIGN(const std::vector<int64_t> strides, context.intVector(3));
  HEARTH_ASSIGN(const int32_t beginMask, context.scalar<int32_t>(4));
  HEARTH_ASSIGN(const int32_t endMask, context.scalar<int32_t>(5));
  HEARTH_ASSIGN(const int32_t shrinkMask, context.scalar<int32_t>(6));
  const size_t rank = input.size();
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumMaskedRank));
  const size_t given = begins.size();
  if (given > rank || ends.size() != given || strides.size() != given)
    return fail(ErrorCode::kBadData,
                "{} has {} begins, {} ends and {} strides for an input of rank {}.",
                context.describe(), begins.size(), ends.size(), strides.size(), rank);
  SliceParameters parameters;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = input[i];
    // TFLite allows limits for the leading dimensions only.
    if (i >= given) {
      parameters.ranges.push_back({0, 1, size});
      parameters.dimensions.push_back(input[i]);
      continue;
    }
    const int32_t bit = int32_t{1} << i;
    // A larger step than the dimension reaches the first element only, as this one does.
    const int64_t stride = std::clamp(strides[i], -size - 1, size + 1);
    const bool forward = stride > 0;
    if (strides[i] == 0)
      return fail(ErrorCode::kBadData, "Stride {} of {} is 0.", i, context.describe());
    const int64_t begin =
        (beginMask & bit) != 0 ? (forward ? 0 : size - 1) : clampPosition(begins[i], size, forward);
    const int64_t end =
        (endMask & bit) != 0 ? (forward ? size : -1) : clampPosition(ends[i], size, forward);
    int64_t count = stepCount(begin, end, stride);
    if ((shrinkMask & bit) != 0) {
      // TFLite writes x[-1] as the empty range from -1 to 0; so an empty range is allowed, too.
      if (!forward || count > 1 || begin >= size)
        return fail(ErrorCode::kBadData,
                    "{} removes dimension {} of size {} and takes {} elements from {} on with "
                    "stride {}; it must be one.",
                    context.describe(), i, size, count, begins[i], strides[i]);
      count = 1;
    } else {
      parameters.dimensions.push_back(static_cast<uint32_t>(count));
    }
    parameters.ranges.push_back({begin, stride, count});
  }
  parameters.dimensions = keepRankAboveZero(context, std::move(parameters.dimensions));
  return parameters;
}

const OperationDefinition kStridedSliceOperation = {OperationType::kStridedSlice, validate,
                                                    prepareParsedShape<parseStridedSlice>,
                                                    executeSlice<parseStridedSlice>};

}  // namespace hearth::ops
