// SPDX-License-Identifier: Apache-2.0
#include "ops/bounding_box.h"

#include <algorithm>
#include <cmath>

namespace hearth::ops {

Status validateBoxes(const Signature& signature, size_t data, size_t rank, size_t boxes,
                     size_t batches) {
  HEARTH_TRY(signature.inputType(data, kFloatTensors | kQuant8Tensors));
  const OperandType type = signature.input(data).type;
  HEARTH_TRY(signature.inputType(
      boxes, kFloatTensors.contains(type) ? type : OperandType::kTensorQuant16Asymm));
  HEARTH_TRY(signature.inputType(batches, OperandType::kTensorInt32));
  HEARTH_TRY(signature.inputRank(data, rank, rank));
  HEARTH_TRY(signature.inputRank(boxes, 2, 2));
  return signature.inputRank(batches, 1, 1);
}

Status setBoxOutputDimensions(OperationContext& context, size_t boxes) {
  const auto count = static_cast<uint32_t>(boxes);
  HEARTH_TRY(context.setOutputDimensions(0, {count}));
  HEARTH_TRY(context.setOutputDimensions(1, {count, 4}));
  return context.setOutputDimensions(2, {count});
}

float overlap(const Box& a, const Box& b) {
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float shared = std::max(width, 0.0f) * std::max(height, 0.0f);
  const float all = a.width() * a.height() + b.width() * b.height() - shared;
  return all > 0.0f ? shared / all : 0.0f;
}

Box transformBox(const Box& box, const float* deltas, float imageHeight, float imageWidth) {
  const float halfWidth = std::exp(deltas[2]) * box.width() * 0.5f;
  const float halfHeight = std::exp(deltas[3]) * box.height() * 0.5f;
  const float x = box.centerX() + deltas[0] * box.width();
  const float y = box.centerY() + deltas[1] * box.height();
  const auto cut = [](float value, float limit) {
    return std::min(std::max(value, 0.0f), limit);
  };
  return {cut(x - halfWidth, imageWidth), cut(y - halfHeight, imageHeight),
          cut(x + halfWidth, imageWidth), cut(y + halfHeight, imageHeight)};
}

std::vector<uint32_t> suppressOverlaps(std::vector<uint32_t> candidates,
                                       std::span<const float> scores, std::span<const Box> boxes,
                                       float threshold, size_t limit) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](uint32_t a, uint32_t b) { return isHigherScore(scores[a], scores[b]); });
  std::vector<uint32_t> kept;
  for (const uint32_t candidate : candidates) {
    if (kept.size() >= limit) break;
    const bool isFree = std::all_of(kept.begin(), kept.end(), [&](uint32_t other) {
      return overlap(boxes[candidate], boxes[other]) < threshold;
    });
    if (isFree) kept.push_back(candidate);
  }
  return kept;
}

Status checkBatchIndices(const OperationContext& context, size_t index, uint32_t batches) {
  const Tensor& tensor = context.inputs[index];
  for (uint64_t i = 0; i < tensor.elementCount(); ++i) {
    const int32_t batch = tensor.as<int32_t>()[i];
    if (batch < 0 || static_cast<uint32_t>(batch) >= batches)
      return fail(ErrorCode::kBadData, "Element {} of input {} of {} is {}, there are {} batches.",
                  i, index, context.describe(), batch, batches);
  }
  return {};
}

Status checkRegions(const OperationContext& context, size_t index, std::span<const float> values) {
  for (size_t i = 0; i + 4 <= values.size(); i += 4) {
    const Box box = boxAt(values.data() + i);
    const bool isFinite = std::isfinite(box.left) && std::isfinite(box.top) &&
                          std::isfinite(box.right) && std::isfinite(box.bottom);
    if (!isFinite || box.left > box.right || box.top > box.bottom)
      return fail(ErrorCode::kBadData, "Region {} (input {}) of {} is from ({}, {}) to ({}, {}).",
                  i / 4, index, context.describe(), box.left, box.top, box.right, box.bottom);
  }
  return {};
}

}  // namespace hearth::ops
