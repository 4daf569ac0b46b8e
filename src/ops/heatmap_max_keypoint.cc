// SPDX-License-Identifier: Apache-2.0
// HEATMAP_MAX_KEYPOINT: finds the peak of each heat map, refines its position between pixels by the
// quadratic surface through its neighbours, and converts it to the coordinates of the map's box.
#include <algorithm>
#include <cmath>

#include "ops/bounding_box.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kHeatmaps, kBoxes, kIsNchw };

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 2));
  HEARTH_TRY(signature.inputType(kHeatmaps, kFloatTensors | kQuant8Tensors));
  const OperandType type = signature.input(kHeatmaps).type;
  HEARTH_TRY(signature.inputType(
      kBoxes, kFloatTensors.contains(type) ? type : OperandType::kTensorQuant16Asymm));
  HEARTH_TRY(signature.inputRank(kHeatmaps, 4, 4));
  HEARTH_TRY(signature.inputRank(kBoxes, 2, 2));
  HEARTH_TRY(signature.inputType(kIsNchw, OperandType::kBool));
  HEARTH_TRY(signature.outputTypeLike(0, kHeatmaps));
  return signature.outputTypeLike(1, kBoxes);
}

struct Parameters {
  bool isNchw = false;
  uint32_t boxes = 0;
  uint32_t size = 0;  // side of the square maps
  uint32_t keypoints = 0;

  size_t at(size_t box, size_t y, size_t x, size_t keypoint) const {
    return isNchw ? ((box * keypoints + keypoint) * size + y) * size + x
                  : ((box * size + y) * size + x) * keypoints + keypoint;
  }
};

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 2));
  HEARTH_TRY(requireRank(context, kHeatmaps, 4, 4));
  Parameters parameters;
  HEARTH_ASSIGN(parameters.isNchw, context.scalar<bool>(kIsNchw));
  const Dimensions& maps = context.inputs[kHeatmaps].dimensions;
  const Dimensions boxes = {maps[0], 4};
  const uint32_t height = maps[parameters.isNchw ? 2 : 1];
  const uint32_t width = maps[parameters.isNchw ? 3 : 2];
  parameters.boxes = maps[0];
  parameters.size = height;
  parameters.keypoints = maps[parameters.isNchw ? 1 : 3];
  if (height != width || height < 2 || context.inputs[kBoxes].dimensions != boxes)
    return fail(ErrorCode::kBadData,
                "{} has heat maps {} and boxes {}; maps are square, of at least 2 pixels, one for "
                "each box.",
                context.describe(), graph::describeDimensions(maps),
                graph::describeDimensions(context.inputs[kBoxes].dimensions));
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  HEARTH_TRY(context.setOutputDimensions(0, {parameters.boxes, parameters.keypoints}));
  return context.setOutputDimensions(1, {parameters.boxes, parameters.keypoints, 2});
}

struct Peak {
  float x = 0.0f;  // offset from the middle of the grid, in pixels
  float y = 0.0f;
  float score = 0.0f;
};

// The extremum of the quadratic surface through a 3 x 3 neighbourhood, found by one Newton step.
Peak refine(const float (&grid)[3][3]) {
  const float xx = grid[1][0] - 2.0f * grid[1][1] + grid[1][2];
  const float yy = grid[0][1] - 2.0f * grid[1][1] + grid[2][1];
  const float xy = (grid[2][2] - grid[2][0] - grid[0][2] + grid[0][0]) * 0.25f;
  const float slopeX = (grid[1][2] - grid[1][0]) * 0.5f;
  const float slopeY = (grid[2][1] - grid[0][1]) * 0.5f;
  Peak peak;
  peak.score = grid[1][1];
  const float determinant = xx * yy - xy * xy;
  constexpr float kFlat = 1e-5f;
  if (!(std::abs(determinant) >= kFlat + kFlat * std::abs(xx * yy))) return peak;
  peak.x = -(yy * slopeX - xy * slopeY) / determinant;
  peak.y = -(xx * slopeY - xy * slopeX) / determinant;
  // A surface that peaks far away says little about this neighbourhood: the peak is moved nearer.
  constexpr float kFarthest = 1.5f;
  const float distance = std::max(std::abs(peak.x), std::abs(peak.y));
  if (distance > kFarthest) {
    peak.x *= kFarthest / distance;
    peak.y *= kFarthest / distance;
  }
  peak.score += slopeX * peak.x + slopeY * peak.y +
                0.5f * (xx * peak.x * peak.x + 2.0f * xy * peak.x * peak.y + yy * peak.y * peak.y);
  return peak;
}

// A neighbour's index; beyond a border, that of the neighbour on the other side.
size_t mirrored(int64_t index, int64_t size) {
  return static_cast<size_t>(index < 0 ? 1 : index >= size ? size - 2 : index);
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const RealInput maps(context.inputs[kHeatmaps]);
  const RealInput boxes(context.inputs[kBoxes]);
  HEARTH_TRY(checkRegions(context, kBoxes, {boxes.data(), boxes.size()}));
  RealOutput scores(context.outputs[0]);
  RealOutput keypoints(context.outputs[1]);
  const int64_t size = parameters.size;
  for (size_t b = 0; b < parameters.boxes; ++b) {
    const Box box = boxAt(boxes.data() + b * 4);
    for (size_t k = 0; k < parameters.keypoints; ++k) {
      int64_t bestY = 0;
      int64_t bestX = 0;
      float best = maps[parameters.at(b, 0, 0, k)];
      for (int64_t y = 0; y < size; ++y) {
        for (int64_t x = 0; x < size; ++x) {
          const float value =
              maps[parameters.at(b, static_cast<size_t>(y), static_cast<size_t>(x), k)];
          if (!(value > best)) continue;
          best = value;
          bestY = y;
          bestX = x;
        }
      }
      float grid[3][3];
      for (int64_t dy = -1; dy <= 1; ++dy)
        for (int64_t dx = -1; dx <= 1; ++dx)
          grid[dy + 1][dx + 1] =
              maps[parameters.at(b, mirrored(bestY + dy, size), mirrored(bestX + dx, size), k)];
      const Peak peak = refine(grid);
      const float scale = static_cast<float>(size);
      const size_t at = b * parameters.keypoints + k;
      scores[at] = peak.score;
      keypoints[at * 2] =
          (static_cast<float>(bestX) + peak.x + 0.5f) / scale * box.width() + box.left;
      keypoints[at * 2 + 1] =
          (static_cast<float>(bestY) + peak.y + 0.5f) / scale * box.height() + box.top;
    }
  }
  scores.store();
  keypoints.store();
  return {};
}

}  // namespace

const OperationDefinition kHeatmapMaxKeypointOperation = {OperationType::kHeatmapMaxKeypoint,
                                                          validate, prepare, execute};

}  // namespace hearth::ops
