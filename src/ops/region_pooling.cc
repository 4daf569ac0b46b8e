// SPDX-License-Identifier: Apache-2.0
#include "ops/region_pooling.h"

#include <cmath>

#include "ops/bounding_box.h"

namespace hearth::ops {

using namespace region_pooling;

Status validateRegionPooling(const Signature& signature, size_t layoutInput) {
  HEARTH_TRY(validateBoxes(signature, kFeatures, 4, kRegions, kBatches));
  HEARTH_TRY(signature.inputType(kOutputHeight, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(kOutputWidth, OperandType::kInt32));
  HEARTH_TRY(signature.floatScalar(kHeightRatio, kFeatures));
  HEARTH_TRY(signature.floatScalar(kWidthRatio, kFeatures));
  HEARTH_TRY(signature.inputType(layoutInput, OperandType::kBool));
  return signature.outputTypeLike(0, kFeatures);
}

Result<RegionParameters> parseRegionPooling(const OperationContext& context, size_t layoutInput) {
  HEARTH_TRY(requireArguments(context, layoutInput + 1, 1));
  HEARTH_TRY(requireRank(context, kFeatures, 4, 4));
  RegionParameters parameters;
  HEARTH_ASSIGN(parameters.isNchw, context.scalar<bool>(layoutInput));
  const Dimensions& features = context.inputs[kFeatures].dimensions;
  const Dimensions& regions = context.inputs[kRegions].dimensions;
  parameters.batches = features[0];
  parameters.height = features[parameters.isNchw ? 2 : 1];
  parameters.width = features[parameters.isNchw ? 3 : 2];
  parameters.depth = features[parameters.isNchw ? 1 : 3];
  if (parameters.height == 0 || parameters.width == 0)
    return fail(ErrorCode::kBadData, "The feature map of {} has the shape {}.", context.describe(),
                graph::describeDimensions(features));
  if (regions.size() != 2 || regions[1] != 4 ||
      context.inputs[kBatches].dimensions != Dimensions{regions[0]})
    return fail(ErrorCode::kBadData, "{} has regions {} and batch indices {}, which do not fit.",
                context.describe(), graph::describeDimensions(regions),
                graph::describeDimensions(context.inputs[kBatches].dimensions));
  parameters.regions = regions[0];
  HEARTH_ASSIGN(const int32_t height, context.scalar<int32_t>(kOutputHeight));
  HEARTH_ASSIGN(const int32_t width, context.scalar<int32_t>(kOutputWidth));
  HEARTH_ASSIGN(parameters.heightRatio, floatScalar(context, kHeightRatio));
  HEARTH_ASSIGN(parameters.widthRatio, floatScalar(context, kWidthRatio));
  const auto isPositive = [](float value) {
    return std::isfinite(value) && value > 0.0f;
  };
  if (height < 1 || width < 1 || !isPositive(parameters.heightRatio) ||
      !isPositive(parameters.widthRatio))
    return fail(ErrorCode::kBadData,
                "{} has an output of {} by {} and ratios {} and {}, all must be positive.",
                context.describe(), height, width, parameters.heightRatio, parameters.widthRatio);
  parameters.outputHeight = static_cast<uint32_t>(height);
  parameters.outputWidth = static_cast<uint32_t>(width);
  parameters.dimensions = parameters.isNchw
                              ? Dimensions{parameters.regions, parameters.depth,
                                           parameters.outputHeight, parameters.outputWidth}
                              : Dimensions{parameters.regions, parameters.outputHeight,
                                           parameters.outputWidth, parameters.depth};
  return parameters;
}

}  // namespace hearth::ops
