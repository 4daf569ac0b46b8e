// SPDX-License-Identifier: Apache-2.0
// ROI_POOLING: each output pixel is the largest input pixel of its bin of the region; an empty bin
// gives 0.
#include <algorithm>
#include <cmath>

#include "ops/bounding_box.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/region_pooling.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {

using namespace region_pooling;

namespace {

constexpr size_t kIsNchw = 7;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(8, 1));
  return validateRegionPooling(signature, kIsNchw);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(RegionParameters parameters, parseRegionPooling(context, kIsNchw));
  return context.setOutputDimensions(0, std::move(parameters.dimensions));
}

// The input pixels [begin, end) of a bin, cut to the feature map.
struct Range {
  size_t begin;
  size_t end;
};

Range binRange(float begin, float end, size_t index, uint32_t outputs, uint32_t size) {
  const float first = std::round(begin);
  const float extent = std::max(std::round(end) - first + 1.0f, 1.0f);
  const float bin = extent / static_cast<float>(outputs);
  const auto cut = [&](float position) {
    // Written so that NaN (from regions at infinity) gives 0.
    return position > 0.0f ? static_cast<size_t>(std::min(position, static_cast<float>(size))) : 0;
  };
  return {cut(std::floor(first + bin * static_cast<float>(index))),
          cut(std::ceil(first + bin * static_cast<float>(index + 1)))};
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const RegionParameters parameters, parseRegionPooling(context, kIsNchw));
  const RealInput features(context.inputs[kFeatures]);
  const RealInput regions(context.inputs[kRegions]);
  HEARTH_TRY(checkBatchIndices(context, kBatches, parameters.batches));
  HEARTH_TRY(checkRegions(context, kRegions, {regions.data(), regions.size()}));
  RealOutput output(context.outputs[0]);
  for (size_t r = 0; r < parameters.regions; ++r) {
    const size_t batch = static_cast<size_t>(context.inputs[kBatches].as<int32_t>()[r]);
    const Box region = boxAt(regions.data() + r * 4);
    for (size_t y = 0; y < parameters.outputHeight; ++y) {
      const Range rows =
          binRange(region.top / parameters.heightRatio, region.bottom / parameters.heightRatio, y,
                   parameters.outputHeight, parameters.height);
      for (size_t x = 0; x < parameters.outputWidth; ++x) {
        const Range columns =
            binRange(region.left / parameters.widthRatio, region.right / parameters.widthRatio, x,
                     parameters.outputWidth, parameters.width);
        for (size_t c = 0; c < parameters.depth; ++c) {
          bool isEmpty = true;
          float largest = 0.0f;
          for (size_t i = rows.begin; i < rows.end; ++i) {
            for (size_t j = columns.begin; j < columns.end; ++j) {
              const float value = features[parameters.inputAt(batch, i, j, c)];
              largest = isEmpty ? value : std::max(largest, value);
              isEmpty = false;
            }
          }
          output[parameters.outputAt(r, y, x, c)] = largest;
        }
      }
    }
  }
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kRoiPoolingOperation = {OperationType::kRoiPooling, validate, prepare,
                                                  execute};

}  // namespace hearth::ops
