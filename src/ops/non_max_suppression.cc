// SPDX-License-Identifier: Apache-2.0
// NON_MAX_SUPPRESSION of the extension: the boxes of the highest scores that do not overlap, with
// an optional decay of the scores of those that overlap a little (soft suppression).
//
// Inputs: boxes [count, 4] as two opposite corners (y, x, y, x), scores [count], the length of the
// lists (TENSOR_INT32 of one element), the overlap from which a box is suppressed, the score that a
// box must exceed, and optionally the standard deviation of the decay, 0 for none (TENSOR_FLOAT32
// of one element each). Outputs: indices [length] and their number, both TENSOR_INT32, and
// optionally the scores [length] after the decay. Elements from that number on are 0.
#include <algorithm>
#include <cmath>
#include <queue>
#include <vector>

#include "ops/bounding_box.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kBoxes, kScores, kLength, kOverlapThreshold, kScoreThreshold, kDeviation };
enum Output : size_t { kIndices, kCount, kKeptScores };

constexpr size_t kRequiredInputs = kDeviation;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kRequiredInputs, kDeviation + 1, kKeptScores, kKeptScores + 1));
  for (const size_t i : {kBoxes, kScores, kOverlapThreshold, kScoreThreshold})
    HEARTH_TRY(signature.inputType(i, OperandType::kTensorFloat32));
  HEARTH_TRY(signature.optionalInputType(kDeviation, OperandType::kTensorFloat32));
  HEARTH_TRY(signature.inputType(kLength, OperandType::kTensorInt32));
  HEARTH_TRY(signature.inputRank(kBoxes, 2, 2));
  HEARTH_TRY(signature.inputRank(kScores, 1, 1));
  for (const size_t i : {kIndices, kCount})
    HEARTH_TRY(signature.outputType(i, OperandType::kTensorInt32));
  if (signature.outputCount() <= kKeptScores) return {};
  return signature.outputType(kKeptScores, OperandType::kTensorFloat32);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, kRequiredInputs, 0));
  HEARTH_TRY(requireRank(context, kBoxes, 2, 2));
  const Dimensions& boxes = context.inputs[kBoxes].dimensions;
  const Dimensions& scores = context.inputs[kScores].dimensions;
  if (boxes[1] != 4 || scores != Dimensions{boxes[0]})
    return fail(ErrorCode::kBadData, "{} has boxes {} and scores {}, which do not fit.",
                context.describe(), graph::describeDimensions(boxes),
                graph::describeDimensions(scores));
  for (const size_t i : {kLength, kOverlapThreshold, kScoreThreshold})
    HEARTH_TRY(requireOneElement(context, i));
  if (context.hasInput(kDeviation)) HEARTH_TRY(requireOneElement(context, kDeviation));
  HEARTH_ASSIGN(const std::vector<int64_t> length, context.intVector(kLength));
  HEARTH_ASSIGN(const uint32_t listed, toDimension(context, length[0]));
  HEARTH_TRY(context.setOutputDimensions(kIndices, {listed}));
  if (context.hasOutput(kKeptScores))
    HEARTH_TRY(context.setOutputDimensions(kKeptScores, {listed}));
  const bool isRankZero =
      context.hasOutput(kCount) && context.outputs[kCount].operand->isRankZeroTensor;
  return context.setOutputDimensions(kCount, isRankZero ? Dimensions{} : Dimensions{1});
}

struct Candidate {
  uint32_t index;
  float score;
  size_t compared;  // the kept boxes that it has been compared with

  // Of candidates with equal scores, the earlier box comes first.
  bool operator<(const Candidate& other) const {
    return score != other.score ? score < other.score : index > other.index;
  }
};

struct Limits {
  size_t length;
  float overlap;
  float score;
  float decay;  // of the exponent; 0 for none
};

// Compares a candidate with the kept boxes that it has not been compared with, the newest first,
// and lowers its score for each overlap. Returns whether a kept box suppresses it.
bool isSuppressed(const std::vector<Box>& boxes, const std::vector<Candidate>& kept,
                  const Limits& limits, Candidate* candidate) {
  for (size_t i = kept.size(); i-- > candidate->compared;) {
    const float shared = overlap(boxes[candidate->index], boxes[kept[i].index]);
    if (shared >= limits.overlap) return true;
    // 0 times an infinite exponent would be NaN.
    if (limits.decay != 0.0f && shared > 0.0f)
      candidate->score *= std::exp(limits.decay * shared * shared);
    if (candidate->score <= limits.score) break;
  }
  return false;
}

std::vector<Candidate> keepBest(const std::vector<Box>& boxes, const float* scores,
                                const Limits& limits) {
  std::priority_queue<Candidate> queue;
  for (uint32_t i = 0; i < boxes.size(); ++i)
    if (scores[i] > limits.score) queue.push({i, scores[i], 0});
  const size_t length = std::min(queue.size(), limits.length);
  std::vector<Candidate> kept;
  while (kept.size() < length && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    const bool suppressed = isSuppressed(boxes, kept, limits, &next);
    next.compared = kept.size();
    if (suppressed) continue;
    if (next.score == before) kept.push_back(next);
    // As in TFLite, a kept box stays in the queue until it is compared with itself, which
    // suppresses it, unless it has no area.
    if (next.score > limits.score) queue.push(next);
  }
  return kept;
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const std::vector<int64_t> length, context.intVector(kLength));
  const float deviation =
      context.hasInput(kDeviation) ? *context.inputs[kDeviation].as<float>() : 0.0f;
  if (!(deviation >= 0.0f))
    return fail(ErrorCode::kBadData, "The deviation of {} is {}, it must not be negative.",
                context.describe(), deviation);
  const Limits limits = {.length = static_cast<size_t>(length[0]),
                         .overlap = *context.inputs[kOverlapThreshold].as<float>(),
                         .score = *context.inputs[kScoreThreshold].as<float>(),
                         .decay = deviation > 0.0f ? -0.5f / deviation : 0.0f};
  std::vector<Box> boxes(context.inputs[kBoxes].dimensions[0]);
  const float* corners = context.inputs[kBoxes].as<float>();
  for (Box& box : boxes) {
    box = {.left = std::min(corners[1], corners[3]),
           .top = std::min(corners[0], corners[2]),
           .right = std::max(corners[1], corners[3]),
           .bottom = std::max(corners[0], corners[2])};
    corners += 4;
  }
  const std::vector<Candidate> kept = keepBest(boxes, context.inputs[kScores].as<float>(), limits);
  const auto fill = [&]<typename T>(size_t output, T Candidate::* member) {
    if (!context.hasOutput(output)) return;
    using Stored = std::conditional_t<std::is_same_v<T, float>, float, int32_t>;
    Stored* target = context.outputs[output].as<Stored>();
    std::fill_n(target, limits.length, Stored{0});
    for (size_t i = 0; i < kept.size(); ++i) target[i] = static_cast<Stored>(kept[i].*member);
  };
  fill(kIndices, &Candidate::index);
  fill(kKeptScores, &Candidate::score);
  if (context.hasOutput(kCount))
    *context.outputs[kCount].as<int32_t>() = static_cast<int32_t>(kept.size());
  return {};
}

}  // namespace

const OperationDefinition kNonMaxSuppressionOperation = {OperationType::kNonMaxSuppression,
                                                         validate, prepare, execute};

}  // namespace hearth::ops
