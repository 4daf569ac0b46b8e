// SPDX-License-Identifier: Apache-2.0
// DETECTION_POSTPROCESSING: decodes boxes relative to anchors and keeps the best that do not
// overlap, either class by class ("regular") or by each anchor's best class ("fast").
#include <algorithm>
#include <cmath>
#include <numeric>
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
  kEncodings,
  kAnchors,
  kScaleY,
  kScaleX,
  kScaleHeight,
  kScaleWidth,
  kUseRegular,
  kMaxDetections,
  kClassesPerDetection,
  kDetectionsPerClass,
  kScoreThreshold,
  kOverlapThreshold,
  kHasBackground,
  kInputCount,
};

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kInputCount, 4));
  HEARTH_TRY(signature.inputType(kScores, kFloatTensors));
  HEARTH_TRY(signature.inputTypeLike(kEncodings, kScores));
  HEARTH_TRY(signature.inputTypeLike(kAnchors, kScores));
  HEARTH_TRY(signature.inputRank(kScores, 3, 3));
  HEARTH_TRY(signature.inputRank(kEncodings, 3, 3));
  HEARTH_TRY(signature.inputRank(kAnchors, 2, 2));
  for (const size_t i :
       {kScaleY, kScaleX, kScaleHeight, kScaleWidth, kScoreThreshold, kOverlapThreshold})
    HEARTH_TRY(signature.floatScalar(i, kScores));
  for (const size_t i : {kUseRegular, kHasBackground})
    HEARTH_TRY(signature.inputType(i, OperandType::kBool));
  for (const size_t i : {kMaxDetections, kClassesPerDetection, kDetectionsPerClass})
    HEARTH_TRY(signature.inputType(i, OperandType::kInt32));
  HEARTH_TRY(signature.outputTypeLike(0, kScores));
  HEARTH_TRY(signature.outputTypeLike(1, kScores));
  HEARTH_TRY(signature.outputType(2, OperandType::kTensorInt32));
  return signature.outputType(3, OperandType::kTensorInt32);
}

struct Parameters {
  uint32_t batches = 0, anchors = 0, classes = 0;
  uint32_t encodingSize = 0;
  float scaleY = 1.0f, scaleX = 1.0f, scaleHeight = 1.0f, scaleWidth = 1.0f;
  bool usesRegular = false;
  uint32_t maxDetections = 0;
  uint32_t classesPerDetection = 0;
  uint32_t detectionsPerClass = 0;
  float scoreThreshold = 0.0f;
  float overlapThreshold = 0.0f;
  uint32_t firstClass = 0;  // 1 where class 0 is the background
};

Result<uint32_t> positive(const OperationContext& context, size_t index, bool isUsed) {
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(index));
  if (value < 1 && isUsed)
    return fail(ErrorCode::kBadData, "Input {} of {} is {}, it must be at least 1.", index,
                context.describe(), value);
  return static_cast<uint32_t>(std::max(value, 0));
}

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, kInputCount, 0));
  HEARTH_TRY(requireRank(context, kScores, 3, 3));
  HEARTH_TRY(requireRank(context, kEncodings, 3, 3));
  const Dimensions& scores = context.inputs[kScores].dimensions;
  const Dimensions& encodings = context.inputs[kEncodings].dimensions;
  const Dimensions anchors = {scores[1], 4};
  Parameters parameters;
  parameters.batches = scores[0];
  parameters.anchors = scores[1];
  parameters.classes = scores[2];
  parameters.encodingSize = encodings[2];
  if (encodings[0] != scores[0] || encodings[1] != scores[1] || encodings[2] < 4 ||
      context.inputs[kAnchors].dimensions != anchors)
    return fail(
        ErrorCode::kBadData, "{} has scores {}, box encodings {} and anchors {}, which do not fit.",
        context.describe(), graph::describeDimensions(scores), graph::describeDimensions(encodings),
        graph::describeDimensions(context.inputs[kAnchors].dimensions));
  HEARTH_ASSIGN(parameters.scaleY, floatScalar(context, kScaleY));
  HEARTH_ASSIGN(parameters.scaleX, floatScalar(context, kScaleX));
  HEARTH_ASSIGN(parameters.scaleHeight, floatScalar(context, kScaleHeight));
  HEARTH_ASSIGN(parameters.scaleWidth, floatScalar(context, kScaleWidth));
  HEARTH_ASSIGN(parameters.usesRegular, context.scalar<bool>(kUseRegular));
  HEARTH_ASSIGN(parameters.maxDetections, positive(context, kMaxDetections, true));
  HEARTH_ASSIGN(parameters.classesPerDetection,
                positive(context, kClassesPerDetection, !parameters.usesRegular));
  HEARTH_ASSIGN(parameters.detectionsPerClass,
                positive(context, kDetectionsPerClass, parameters.usesRegular));
  HEARTH_ASSIGN(parameters.scoreThreshold, floatScalar(context, kScoreThreshold));
  HEARTH_ASSIGN(parameters.overlapThreshold, floatScalar(context, kOverlapThreshold));
  HEARTH_ASSIGN(const bool hasBackground, context.scalar<bool>(kHasBackground));
  parameters.firstClass = hasBackground ? 1 : 0;
  if (parameters.classes <= parameters.firstClass)
    return fail(ErrorCode::kBadData, "{} has {} classes including the background.",
                context.describe(), parameters.classes);
  return parameters;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const Dimensions list = {parameters.batches, parameters.maxDetections};
  HEARTH_TRY(context.setOutputDimensions(0, list));
  HEARTH_TRY(context.setOutputDimensions(1, {list[0], list[1], 4}));
  HEARTH_TRY(context.setOutputDimensions(2, list));
  return context.setOutputDimensions(3, {parameters.batches});
}

// The encoding and the anchor are (y, x, height, width) around the centre.
Box decode(const Parameters& parameters, const float* encoding, const float* anchor) {
  const float y = encoding[0] / parameters.scaleY * anchor[2] + anchor[0];
  const float x = encoding[1] / parameters.scaleX * anchor[3] + anchor[1];
  const float halfHeight = 0.5f * std::exp(encoding[2] / parameters.scaleHeight) * anchor[2];
  const float halfWidth = 0.5f * std::exp(encoding[3] / parameters.scaleWidth) * anchor[3];
  return {x - halfWidth, y - halfHeight, x + halfWidth, y + halfHeight};
}

struct Detection {
  uint32_t anchor;
  uint32_t label;
  float score;
};

std::vector<Detection> detectByClass(const Parameters& parameters, const float* scores,
                                     const std::vector<Box>& boxes) {
  std::vector<Detection> found;
  std::vector<float> classScores(parameters.anchors);
  for (uint32_t c = parameters.firstClass; c < parameters.classes; ++c) {
    std::vector<uint32_t> candidates;
    for (uint32_t a = 0; a < parameters.anchors; ++a) {
      classScores[a] = scores[size_t{a} * parameters.classes + c];
      if (classScores[a] > parameters.scoreThreshold) candidates.push_back(a);
    }
    for (const uint32_t a :
         suppressOverlaps(std::move(candidates), classScores, boxes, parameters.overlapThreshold,
                          parameters.detectionsPerClass))
      found.push_back({a, c, classScores[a]});
  }
  std::stable_sort(found.begin(), found.end(), [](const Detection& a, const Detection& b) {
    return isHigherScore(a.score, b.score);
  });
  return found;
}

std::vector<Detection> detectByAnchor(const Parameters& parameters, const float* scores,
                                      const std::vector<Box>& boxes) {
  std::vector<float> bestScores(parameters.anchors);
  std::vector<uint32_t> candidates;
  for (uint32_t a = 0; a < parameters.anchors; ++a) {
    const float* row = scores + size_t{a} * parameters.classes;
    bestScores[a] = *std::max_element(row + parameters.firstClass, row + parameters.classes);
    if (bestScores[a] > parameters.scoreThreshold) candidates.push_back(a);
  }
  const uint32_t usableClasses = parameters.classes - parameters.firstClass;
  const uint32_t perAnchor = std::min(usableClasses, parameters.classesPerDetection);
  std::vector<Detection> found;
  std::vector<uint32_t> order(usableClasses);
  for (const uint32_t a : suppressOverlaps(std::move(candidates), bestScores, boxes,
                                           parameters.overlapThreshold, parameters.maxDetections)) {
    const float* row = scores + size_t{a} * parameters.classes;
    std::iota(order.begin(), order.end(), parameters.firstClass);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t b, uint32_t c) { return isHigherScore(row[b], row[c]); });
    for (uint32_t i = 0; i < perAnchor; ++i) found.push_back({a, order[i], row[order[i]]});
  }
  return found;
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  const RealInput allScores(context.inputs[kScores]);
  const RealInput encodings(context.inputs[kEncodings]);
  const RealInput anchors(context.inputs[kAnchors]);
  const size_t slots = size_t{parameters.batches} * parameters.maxDetections;
  // Slots without a detection stay 0.
  std::vector<float> scores(slots, 0.0f);
  std::vector<float> corners(slots * 4, 0.0f);
  std::vector<int32_t> labels(slots, 0);
  std::vector<int32_t> counts(parameters.batches, 0);
  std::vector<Box> boxes(parameters.anchors);
  for (size_t batch = 0; batch < parameters.batches; ++batch) {
    for (size_t a = 0; a < parameters.anchors; ++a)
      boxes[a] = decode(
          parameters, encodings.data() + (batch * parameters.anchors + a) * parameters.encodingSize,
          anchors.data() + a * 4);
    const float* batchScores = allScores.data() + batch * parameters.anchors * parameters.classes;
    std::vector<Detection> found = parameters.usesRegular
                                       ? detectByClass(parameters, batchScores, boxes)
                                       : detectByAnchor(parameters, batchScores, boxes);
    if (found.size() > parameters.maxDetections) found.resize(parameters.maxDetections);
    counts[batch] = static_cast<int32_t>(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const size_t slot = batch * parameters.maxDetections + i;
      const Box& box = boxes[found[i].anchor];
      scores[slot] = found[i].score;
      labels[slot] = static_cast<int32_t>(found[i].label);
      corners[slot * 4] = box.top;
      corners[slot * 4 + 1] = box.left;
      corners[slot * 4 + 2] = box.bottom;
      corners[slot * 4 + 3] = box.right;
    }
  }
  storeReal(context, 0, scores);
  storeReal(context, 1, corners);
  if (context.hasOutput(2))
    std::copy(labels.begin(), labels.end(), context.outputs[2].as<int32_t>());
  if (context.hasOutput(3))
    std::copy(counts.begin(), counts.end(), context.outputs[3].as<int32_t>());
  return {};
}

}  // namespace

const OperationDefinition kDetectionPostprocessingOperation = {
    OperationType::kDetectionPostprocessing, validate, prepare, execute};

}  // namespace hearth::ops
