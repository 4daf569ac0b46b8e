// SPDX-License-Identifier: Apache-2.0
// ROI_ALIGN: each output pixel is the mean of bilinear samples inside its bin of the region.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/bounding_box.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/region_pooling.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {

using namespace region_pooling;

namespace {

constexpr size_t kHeightSamples = 7;
constexpr size_t kWidthSamples = 8;
constexpr size_t kIsNchw = 9;

// Limit of the adaptive number of samples, which is the bin's size: more samples, for regions far
// larger than any feature map, would only take time.
constexpr float kMaximumSamples = 4096.0f;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(10, 1));
  HEARTH_TRY(signature.inputType(kHeightSamples, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(kWidthSamples, OperandType::kInt32));
  return validateRegionPooling(signature, kIsNchw);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(RegionParameters parameters, parseRegionPooling(context, kIsNchw));
  for (const size_t i : {kHeightSamples, kWidthSamples}) {
    HEARTH_ASSIGN(const int32_t samples, context.scalar<int32_t>(i));
    if (samples < 0 || static_cast<float>(samples) > kMaximumSamples)
      return fail(ErrorCode::kBadData, "{} takes {} samples (input {}), it must be 0 to {}.",
                  context.describe(), samples, i, kMaximumSamples);
  }
  return context.setOutputDimensions(0, std::move(parameters.dimensions));
}

// A position along one side: two neighbouring pixels and the weight of the second.
struct Sample {
  size_t lower;
  size_t upper;
  float weight;
};

Sample sampleAt(float position, uint32_t size) {
  const float inside = std::max(position, 0.0f);
  // Negated, so that NaN (from regions at infinity) is handled here, too.
  if (!(inside < static_cast<float>(size - 1))) return {size - 1, size - 1, 0.0f};
  const float floor = std::floor(inside);
  const size_t lower = static_cast<size_t>(floor);
  return {lower, lower + 1, inside - floor};
}

// The sample positions of every bin of one region along one side: outputs * count of them.
struct Axis {
  std::vector<Sample> samples;
  size_t count = 1;  // for each bin
};

Result<Axis> makeAxis(const OperationContext& context, float begin, float end, uint32_t outputs,
                      uint32_t size, int32_t wanted) {
  const float extent = std::max(end - begin, 1.0f);
  const float bin = extent / static_cast<float>(outputs);
  const float samples = wanted > 0 ? static_cast<float>(wanted) : std::ceil(bin);
  if (!(samples >= 1.0f && samples <= kMaximumSamples))
    return fail(ErrorCode::kBadData, "{} has a region of {} pixels for {} bins.",
                context.describe(), extent, outputs);
  Axis axis;
  axis.count = static_cast<size_t>(samples);
  const float step = bin / samples;
  for (uint32_t i = 0; i < outputs; ++i)
    for (size_t s = 0; s < axis.count; ++s)
      axis.samples.push_back(sampleAt(
          begin + bin * static_cast<float>(i) + step * 0.5f + step * static_cast<float>(s), size));
  return axis;
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const RegionParameters parameters, parseRegionPooling(context, kIsNchw));
  HEARTH_ASSIGN(const int32_t heightSamples, context.scalar<int32_t>(kHeightSamples));
  HEARTH_ASSIGN(const int32_t widthSamples, context.scalar<int32_t>(kWidthSamples));
  const RealInput features(context.inputs[kFeatures]);
  const RealInput regions(context.inputs[kRegions]);
  HEARTH_TRY(checkBatchIndices(context, kBatches, parameters.batches));
  HEARTH_TRY(checkRegions(context, kRegions, {regions.data(), regions.size()}));
  RealOutput output(context.outputs[0]);
  std::vector<float> sums(parameters.depth);
  const size_t channelStep = parameters.isNchw ? size_t{parameters.height} * parameters.width : 1;
  for (size_t r = 0; r < parameters.regions; ++r) {
    const size_t batch = static_cast<size_t>(context.inputs[kBatches].as<int32_t>()[r]);
    const Box region = boxAt(regions.data() + r * 4);
    HEARTH_ASSIGN(const Axis vertical,
                  makeAxis(context, region.top / parameters.heightRatio,
                           region.bottom / parameters.heightRatio, parameters.outputHeight,
                           parameters.height, heightSamples));
    HEARTH_ASSIGN(
        const Axis horizontal,
        makeAxis(context, region.left / parameters.widthRatio, region.right / parameters.widthRatio,
                 parameters.outputWidth, parameters.width, widthSamples));
    const float share = 1.0f / static_cast<float>(vertical.count * horizontal.count);
    for (size_t y = 0; y < parameters.outputHeight; ++y) {
      for (size_t x = 0; x < parameters.outputWidth; ++x) {
        std::fill(sums.begin(), sums.end(), 0.0f);
        for (size_t i = 0; i < vertical.count; ++i) {
          const Sample& v = vertical.samples[y * vertical.count + i];
          for (size_t j = 0; j < horizontal.count; ++j) {
            const Sample& h = horizontal.samples[x * horizontal.count + j];
            const float* topLeft = features.data() + parameters.inputAt(batch, v.lower, h.lower, 0);
            const float* topRight =
                features.data() + parameters.inputAt(batch, v.lower, h.upper, 0);
            const float* bottomLeft =
                features.data() + parameters.inputAt(batch, v.upper, h.lower, 0);
            const float* bottomRight =
                features.data() + parameters.inputAt(batch, v.upper, h.upper, 0);
            const float weights[4] = {(1.0f - v.weight) * (1.0f - h.weight),
                                      (1.0f - v.weight) * h.weight, v.weight * (1.0f - h.weight),
                                      v.weight * h.weight};
            for (size_t c = 0; c < parameters.depth; ++c) {
              const size_t at = c * channelStep;
              sums[c] += weights[0] * topLeft[at] + weights[1] * topRight[at] +
                         weights[2] * bottomLeft[at] + weights[3] * bottomRight[at];
            }
          }
        }
        for (size_t c = 0; c < parameters.depth; ++c)
          output[parameters.outputAt(r, y, x, c)] = sums[c] * share;
      }
    }
  }
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kRoiAlignOperation = {OperationType::kRoiAlign, validate, prepare,
                                                execute};

}  // namespace hearth::ops
