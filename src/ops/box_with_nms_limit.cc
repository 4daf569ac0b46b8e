// SPDX-License-Identifier: Apache-2.0
// BOX_WITH_NMS_LIMIT: takes the boxes of each batch and class in the order of their scores; each
// box that is taken lowers the scores of the boxes that it overlaps.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/bounding_box.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/recurrent_activation.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t {
  kScores,
  kBoxes,
  kBatches,
  kScoreThreshold,
  kMaxDetections,
  kKernel,
  kOverlapThreshold,
  kSigma,
  kSuppressedThreshold,
  kInputCount,
};
enum Kernel : int32_t { kHard = 0, kLinear = 1, kGaussian = 2 };

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kInputCount, 4));
  HEARTH_TRY(validateBoxes(signature, kScores, 2, kBoxes, kBatches));
  for (const size_t i : {kScoreThreshold, kOverlapThreshold, kSigma, kSuppressedThreshold})
    HEARTH_TRY(signature.floatScalar(i, kScores));
  HEARTH_TRY(signature.inputType(kMaxDetections, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(kKernel, OperandType::kInt32));
  HEARTH_TRY(signature.outputTypeLike(0, kScores));
  HEARTH_TRY(signature.outputTypeLike(1, kBoxes));
  HEARTH_TRY(signature.outputType(2, OperandType::kTensorInt32));
  return signature.outputType(3, OperandType::kTensorInt32);
}

struct Parameters {
  float scoreThreshold = 0.0f;
  size_t maxDetections = 0;
  Kernel kernel = kHard;
  float overlapThreshold = 0.0f;
  float sigma = 1.0f;
  float suppressedThreshold = 0.0f;

  float weight(float shared) const {
    switch (kernel) {
      case kHard:
        return shared < overlapThreshold ? 1.0f : 0.0f;
      case kLinear:
        return shared < overlapThreshold ? 1.0f : 1.0f - shared;
      case kGaussian:
        return std::exp(-shared * shared / sigma);
    }
    return 1.0f;
  }
};

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, kInputCount, 0));
  HEARTH_TRY(requireRank(context, kScores, 2, 2));
  const Dimensions& scores = context.inputs[kScores].dimensions;
  const Dimensions& boxes = context.inputs[kBoxes].dimensions;
  if (boxes.size() != 2 || boxes[0] != scores[0] || boxes[1] != uint64_t{scores[1]} * 4 ||
      context.inputs[kBatches].dimensions != Dimensions{scores[0]})
    return fail(
        ErrorCode::kBadData, "{} has scores {}, boxes {} and batch indices {}, which do not fit.",
        context.describe(), graph::describeDimensions(scores), graph::describeDimensions(boxes),
        graph::describeDimensions(context.inputs[kBatches].dimensions));
  Parameters parameters;
  HEARTH_ASSIGN(parameters.scoreThreshold, floatScalar(context, kScoreThreshold));
  HEARTH_ASSIGN(const int32_t maxDetections, context.scalar<int32_t>(kMaxDetections));
  parameters.maxDetections = maxDetections > 0 ? static_cast<size_t>(maxDetections) : SIZE_MAX;
  HEARTH_ASSIGN(const int32_t kernel, context.scalar<int32_t>(kKernel));
  if (kernel < kHard || kernel > kGaussian)
    return fail(ErrorCode::kBadData, "The NMS kernel of {} is {}, it must be 0, 1 or 2.",
                context.describe(), kernel);
  parameters.kernel = static_cast<Kernel>(kernel);
  HEARTH_ASSIGN(parameters.overlapThreshold, floatScalar(context, kOverlapThreshold));
  HEARTH_ASSIGN(parameters.sigma, floatScalar(context, kSigma));
  HEARTH_ASSIGN(parameters.suppressedThreshold, floatScalar(context, kSuppressedThreshold));
  return parameters;
}

struct Detection {
  size_t position;  // region * classes + class
  float score;      // after suppression
};

struct Detections {
  std::vector<Detection> list;
  std::vector<int32_t> batches;  // of each
};

// Takes the best candidate again and again. The candidates that it overlaps get a lower score or
// are dropped.
void suppressSoftly(const Parameters& parameters, const float* boxes,
                    std::vector<Detection> candidates, std::vector<Detection>* taken) {
  while (!candidates.empty()) {
    const auto best =
        std::max_element(candidates.begin(), candidates.end(),
                         [](const Detection& a, const Detection& b) { return a.score < b.score; });
    const Detection detection = *best;
    candidates.erase(best);
    taken->push_back(detection);
    const Box box = boxAt(boxes + detection.position * 4);
    for (Detection& other : candidates)
      other.score *= parameters.weight(overlap(box, boxAt(boxes + other.position * 4)));
    std::erase_if(candidates, [&](const Detection& other) {
      return other.score < parameters.suppressedThreshold;
    });
  }
}

Result<Detections> detect(const OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  for (const size_t i : {kScores, kBoxes, kBatches})
    if (context.inputs[i].data == nullptr && context.inputs[i].elementCount() > 0)
      return needsRuntimeValue(context, i);
  const RealInput scores(context.inputs[kScores]);
  const RealInput boxes(context.inputs[kBoxes]);
  HEARTH_TRY(checkRegions(context, kBoxes, {boxes.data(), boxes.size()}));
  const int32_t* batches = context.inputs[kBatches].as<int32_t>();
  const size_t regions = context.inputs[kScores].dimensions[0];
  const size_t classes = context.inputs[kScores].dimensions[1];
  Detections detections;
  for (size_t begin = 0, end = 0; begin < regions; begin = end) {
    while (end < regions && batches[end] == batches[begin]) ++end;
    if (end < regions && batches[end] < batches[begin])
      return fail(ErrorCode::kBadData, "Batch index {} of {} is {} after {}, they must not fall.",
                  end, context.describe(), batches[end], batches[begin]);
    std::vector<Detection> taken;
    // Class 0 is the background.
    for (size_t c = 1; c < classes; ++c) {
      std::vector<Detection> candidates;
      for (size_t i = begin; i < end; ++i) {
        const float score = scores[i * classes + c];
        if (score > parameters.scoreThreshold) candidates.push_back({i * classes + c, score});
      }
      suppressSoftly(parameters, boxes.data(), std::move(candidates), &taken);
    }
    if (taken.size() > parameters.maxDetections) {
      std::stable_sort(taken.begin(), taken.end(), [](const Detection& a, const Detection& b) {
        return isHigherScore(a.score, b.score);
      });
      taken.resize(parameters.maxDetections);
      std::stable_sort(taken.begin(), taken.end(), [&](const Detection& a, const Detection& b) {
        return a.position % classes < b.position % classes;
      });
    }
    detections.list.insert(detections.list.end(), taken.begin(), taken.end());
    detections.batches.resize(detections.list.size(), batches[begin]);
  }
  return detections;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Detections detections, detect(context));
  HEARTH_TRY(setBoxOutputDimensions(context, detections.list.size()));
  return context.setOutputDimensions(3, {static_cast<uint32_t>(detections.list.size())});
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Detections detections, detect(context));
  const RealInput boxes(context.inputs[kBoxes]);
  const size_t classes = context.inputs[kScores].dimensions[1];
  std::vector<float> scores;
  std::vector<float> corners;
  for (size_t i = 0; i < detections.list.size(); ++i) {
    const Detection& detection = detections.list[i];
    scores.push_back(detection.score);
    corners.insert(corners.end(), boxes.data() + detection.position * 4,
                   boxes.data() + detection.position * 4 + 4);
    if (context.hasOutput(2))
      context.outputs[2].as<int32_t>()[i] = static_cast<int32_t>(detection.position % classes);
    if (context.hasOutput(3)) context.outputs[3].as<int32_t>()[i] = detections.batches[i];
  }
  storeReal(context, 0, scores);
  storeReal(context, 1, corners);
  return {};
}

}  // namespace

const OperationDefinition kBoxWithNmsLimitOperation = {OperationType::kBoxWithNmsLimit, validate,
                                                       prepare, execute};

}  // namespace hearth::ops
