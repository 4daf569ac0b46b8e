// SPDX-License-Identifier: Apache-2.0
#include "ops/conv_3d_extents.h"

#include <algorithm>

namespace hearth::ops {
namespace {

constexpr int32_t kPaddingSame = 1;
constexpr int32_t kPaddingValid = 2;
constexpr size_t kStrides = kConv3dPadding + 1;
constexpr size_t kDilations = kStrides + 3;

Result<int64_t> positive(const OperationContext& context, size_t index) {
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(index));
  if (value > 0) return value;
  return fail(ErrorCode::kBadData, "Input {} of {} is {}, it must be positive.", index,
              context.describe(), value);
}

}  // namespace

Status validateConv3d(const Signature& signature) {
  enum Input : size_t { kData, kFilter, kBias };
  HEARTH_TRY(signature.inputType(kData, kFloatTensors));
  HEARTH_TRY(signature.inputTypeLike(kFilter, kData));
  HEARTH_TRY(signature.optionalInputTypeLike(kBias, kData));
  for (const size_t i : {kData, kFilter}) HEARTH_TRY(signature.inputRank(i, 5, 5));
  HEARTH_TRY(signature.inputRank(kBias, 1, 1));
  for (size_t i = kConv3dPadding; i <= kConv3dActivation; ++i)
    HEARTH_TRY(signature.inputType(i, OperandType::kInt32));
  return signature.outputTypeLike(0, kData);
}

Result<Extents> parseExtents(const OperationContext& context, std::span<const uint32_t, 3> sizes,
                             std::span<const uint32_t, 3> filter) {
  HEARTH_ASSIGN(const int32_t padding, context.scalar<int32_t>(kConv3dPadding));
  if (padding != kPaddingSame && padding != kPaddingValid)
    return fail(ErrorCode::kBadData, "The padding of {} is {}, it must be 1 or 2.",
                context.describe(), padding);
  Extents extents;
  for (size_t i = 0; i < extents.size(); ++i) {
    Extent& extent = extents[i];
    extent.input = sizes[i];
    extent.filter = filter[i];
    HEARTH_ASSIGN(extent.stride, positive(context, kStrides + i));
    HEARTH_ASSIGN(extent.dilation, positive(context, kDilations + i));
    const int64_t reach = extent.dilation * (extent.filter - 1) + 1;
    if (extent.filter == 0 || (padding == kPaddingValid && reach > extent.input))
      return fail(ErrorCode::kBadData, "The filter {} of {} is larger than its volume {}.",
                  graph::describeDimensions({filter.begin(), filter.end()}), context.describe(),
                  graph::describeDimensions({sizes.begin(), sizes.end()}));
    const int64_t positions = padding == kPaddingSame ? extent.input : extent.input - reach + 1;
    extent.output = (positions + extent.stride - 1) / extent.stride;
    if (padding == kPaddingSame)
      extent.before =
          std::max<int64_t>((extent.output - 1) * extent.stride + reach - extent.input, 0) / 2;
  }
  return extents;
}

}  // namespace hearth::ops
