// SPDX-License-Identifier: Apache-2.0
// Boxes and the suppression of overlapping ones, for the detection operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/validation.h"

namespace hearth::ops {

// Axis-aligned, in the order in which NNAPI stores the four numbers.
struct Box {
  float left = 0.0f, top = 0.0f, right = 0.0f, bottom = 0.0f;

  float width() const { return right - left; }
  float height() const { return bottom - top; }
  float centerX() const { return (left + right) * 0.5f; }
  float centerY() const { return (top + bottom) * 0.5f; }
};

// Types and ranks of three inputs: data of this rank, four corners for each box, and the number of
// the image that each box is in.
Status validateBoxes(const Signature& signature, size_t data, size_t rank, size_t boxes,
                     size_t batches);

// The first three outputs of an operation that finds boxes: a score, four corners and a number for
// each.
Status setBoxOutputDimensions(OperationContext& context, size_t boxes);

inline Box boxAt(const float* values) {
  return {values[0], values[1], values[2], values[3]};
}

// Intersection over union; 0 for boxes without area.
float overlap(const Box& a, const Box& b);

// A box moved by (dx, dy) times its size and scaled by exp(dw), exp(dh), then cut to the image.
Box transformBox(const Box& box, const float* deltas, float imageHeight, float imageWidth);

// Descending order in which NaN comes last.
inline bool isHigherScore(float a, float b) {
  return a > b || (a == a && b != b);
}

// Indices of at most `limit` boxes, highest score first, the earlier of equal ones first. A box is
// left out if a kept box of higher score overlaps it by `threshold` or more.
std::vector<uint32_t> suppressOverlaps(std::vector<uint32_t> candidates,
                                       std::span<const float> scores, std::span<const Box> boxes,
                                       float threshold, size_t limit);

// The batch index of each region, input `index`: in [0, batches), else kBadData.
Status checkBatchIndices(const OperationContext& context, size_t index, uint32_t batches);

// kBadData when a region, input `index` of [count, 4], is not finite or has its ends swapped.
Status checkRegions(const OperationContext& context, size_t index, std::span<const float> values);

}  // namespace hearth::ops
