// SPDX-License-Identifier: Apache-2.0
// TFLITE_DETECTION_POSTPROCESS of the extension: the custom operation TFLite_Detection_PostProcess.
// Decodes boxes relative to anchors and keeps the best that do not overlap, either class by class
// ("regular") or by each anchor's best class ("fast").
//
// Inputs: box encodings [1, anchors, 4 or more], class predictions [1, anchors, classes, with or
// without a background class in front], anchors [anchors, 4], then scalars as in enum Input.
// Outputs, all TENSOR_FLOAT32: boxes [1, n, 4] as (top, left, bottom, right), classes [1, n]
// without the background, scores [1, n], count [1]; n is the most detections times the classes for
// each. Elements after the detections found are 0.
//
// It differs from NNAPI's DETECTION_POSTPROCESSING in more than the order of its arguments: a score
// equal to the threshold counts, an overlap equal to the threshold does not suppress, boxes are
// decoded in double precision, each box of the fast form has as many slots as a detection may have
// classes, and the count of the fast form is that of the boxes.
#include "ops/tflite_detection_postprocess.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/bounding_box.h"
#include "ops/output_shape.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t {
  kEncodings,
  kScores,
  kAnchors,
  kMaxDetections,
  kClassesPerDetection,
  kDetectionsPerClass,
  kUseRegular,
  kScoreThreshold,
  kOverlapThreshold,
  kClasses,
  kScaleY,
  kScaleX,
  kScaleHeight,
  kScaleWidth,
  kInputCount,
};

constexpr TypeSet kDataTensors = OperandType::kTensorFloat32 | kQuant8Tensors;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kInputCount, 4));
  for (const size_t i : {kEncodings, kScores, kAnchors})
    HEARTH_TRY(signature.inputType(i, kDataTensors));
  HEARTH_TRY(signature.inputRank(kEncodings, 3, 3));
  HEARTH_TRY(signature.inputRank(kScores, 3, 3));
  HEARTH_TRY(signature.inputRank(kAnchors, 2, 2));
  for (const size_t i : {kMaxDetections, kClassesPerDetection, kDetectionsPerClass, kClasses})
    HEARTH_TRY(signature.inputType(i, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(kUseRegular, OperandType::kBool));
  for (const size_t i :
       {kScoreThreshold, kOverlapThreshold, kScaleY, kScaleX, kScaleHeight, kScaleWidth})
    HEARTH_TRY(signature.inputType(i, OperandType::kFloat32));
  for (size_t i = 0; i < 4; ++i) HEARTH_TRY(signature.outputType(i, OperandType::kTensorFloat32));
  return {};
}

Result<uint32_t> positive(const OperationContext& context, size_t index) {
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(index));
  if (value < 1)
    return fail(ErrorCode::kBadData, "Input {} of {} is {}, it must be at least 1.", index,
                context.describe(), value);
  return static_cast<uint32_t>(value);
}

Result<float> boxScale(const OperationContext& context, size_t index) {
  HEARTH_ASSIGN(const float value, context.scalar<float>(index));
  if (!std::isfinite(value) || value == 0.0f)
    return fail(ErrorCode::kBadData, "Input {} of {} is {}, it must be finite and not 0.", index,
                context.describe(), value);
  return value;
}

Status parseShapes(const OperationContext& context, TfliteDetectionParameters* parameters) {
  HEARTH_TRY(requireArguments(context, kInputCount, 0));
  HEARTH_TRY(requireRank(context, kEncodings, 3, 3));
  HEARTH_TRY(requireRank(context, kScores, 3, 3));
  const Dimensions& encodings = context.inputs[kEncodings].dimensions;
  const Dimensions& scores = context.inputs[kScores].dimensions;
  const Dimensions& anchors = context.inputs[kAnchors].dimensions;
  if (encodings[0] != 1 || encodings[2] < 4 || scores[0] != 1 || scores[1] != encodings[1] ||
      anchors != Dimensions{encodings[1], 4})
    return fail(ErrorCode::kBadData,
                "{} has box encodings {}, class predictions {} and anchors {}, which do not fit.",
                context.describe(), graph::describeDimensions(encodings),
                graph::describeDimensions(scores), graph::describeDimensions(anchors));
  parameters->anchors = encodings[1];
  parameters->encodingSize = encodings[2];
  parameters->columns = scores[2];
  HEARTH_ASSIGN(parameters->classes, positive(context, kClasses));
  if (parameters->columns < parameters->classes || parameters->columns - parameters->classes > 1)
    return fail(ErrorCode::kBadData,
                "{} has {} classes and predictions for {}, at most one more, the background.",
                context.describe(), parameters->classes, parameters->columns);
  parameters->firstClass = parameters->columns - parameters->classes;
  return {};
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const TfliteDetectionParameters parameters, parseTfliteDetection(context));
  HEARTH_ASSIGN(const uint32_t slots, toDimension(context, int64_t{parameters.maxDetections} *
                                                               parameters.classesPerDetection));
  HEARTH_TRY(context.setOutputDimensions(0, {1, slots, 4}));
  HEARTH_TRY(context.setOutputDimensions(1, {1, slots}));
  HEARTH_TRY(context.setOutputDimensions(2, {1, slots}));
  return context.setOutputDimensions(3, {1});
}

// The encoding and the anchor are (y, x, height, width) around the centre.
Box decode(const TfliteDetectionParameters& parameters, const float* encoding,
           const float* anchor) {
  const double anchorHeight = anchor[2];
  const double anchorWidth = anchor[3];
  const auto y = static_cast<float>(double{encoding[0]} / parameters.scaleY * anchorHeight +
                                    double{anchor[0]});
  const auto x =
      static_cast<float>(double{encoding[1]} / parameters.scaleX * anchorWidth + double{anchor[1]});
  const auto halfHeight = static_cast<float>(
      0.5 * std::exp(double{encoding[2]} / parameters.scaleHeight) * anchorHeight);
  const auto halfWidth =
      static_cast<float>(0.5 * std::exp(double{encoding[3]} / parameters.scaleWidth) * anchorWidth);
  return {x - halfWidth, y - halfHeight, x + halfWidth, y + halfHeight};
}

Result<std::vector<Box>> decodeAll(const OperationContext& context,
                                   const TfliteDetectionParameters& parameters) {
  const RealInput encodings(context.inputs[kEncodings]);
  const RealInput anchors(context.inputs[kAnchors]);
  std::vector<Box> boxes(parameters.anchors);
  for (size_t i = 0; i < boxes.size(); ++i) {
    boxes[i] =
        decode(parameters, encodings.data() + i * parameters.encodingSize, anchors.data() + i * 4);
    if (boxes[i].left > boxes[i].right || boxes[i].top > boxes[i].bottom)
      return fail(ErrorCode::kBadData, "Box {} of {} is from ({}, {}) to ({}, {}).", i,
                  context.describe(), boxes[i].left, boxes[i].top, boxes[i].right, boxes[i].bottom);
  }
  return boxes;
}

// Indices of at most `limit` anchors, highest score first, the earlier of equal ones first. Scores
// must reach the threshold. An anchor is left out if a kept one of a higher score overlaps its box
// by more than the overlap threshold.
std::vector<uint32_t> keepBest(const TfliteDetectionParameters& parameters,
                               const std::vector<float>& scores, const std::vector<Box>& boxes,
                               size_t limit) {
  std::vector<uint32_t> candidates;
  for (uint32_t i = 0; i < scores.size(); ++i)
    if (scores[i] >= parameters.scoreThreshold) candidates.push_back(i);
  std::ranges::stable_sort(candidates,
                           [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  std::vector<uint32_t> kept;
  for (const uint32_t candidate : candidates) {
    if (kept.size() >= limit) break;
    const bool isFree = std::ranges::none_of(kept, [&](uint32_t other) {
      return overlap(boxes[other], boxes[candidate]) > parameters.overlapThreshold;
    });
    if (isFree) kept.push_back(candidate);
  }
  return kept;
}

struct Detection {
  size_t slot;
  uint32_t anchor;
  uint32_t label;  // without the background
  float score;
};

// The best detections of all classes; of equal scores that of the earlier class comes first.
std::vector<Detection> detectByClass(const TfliteDetectionParameters& parameters,
                                     const float* scores, const std::vector<Box>& boxes) {
  std::vector<Detection> found;
  // An empty `boxes` may come with any number of classes.
  if (boxes.empty()) return found;
  std::vector<float> classScores(parameters.anchors);
  for (uint32_t c = 0; c < parameters.classes; ++c) {
    for (size_t a = 0; a < parameters.anchors; ++a)
      classScores[a] = scores[a * parameters.columns + parameters.firstClass + c];
    for (const uint32_t a : keepBest(parameters, classScores, boxes, parameters.detectionsPerClass))
      found.push_back({0, a, c, classScores[a]});
  }
  std::ranges::stable_sort(
      found, [](const Detection& a, const Detection& b) { return a.score > b.score; });
  if (found.size() > parameters.maxDetections) found.resize(parameters.maxDetections);
  for (size_t i = 0; i < found.size(); ++i) found[i].slot = i;
  return found;
}

// The best boxes, each with its best classes; `*boxCount` is the number of boxes.
std::vector<Detection> detectByAnchor(const TfliteDetectionParameters& parameters,
                                      const float* scores, const std::vector<Box>& boxes,
                                      size_t* boxCount) {
  *boxCount = 0;
  // An empty `boxes` may come with any number of classes.
  if (boxes.empty()) return {};
  const auto rowOf = [&](size_t anchor) {
    return scores + anchor * parameters.columns + parameters.firstClass;
  };
  const auto isHigher = [](float a, float b) {
    return isHigherScore(a, b);
  };
  std::vector<float> best(parameters.anchors);
  for (size_t a = 0; a < parameters.anchors; ++a)
    best[a] = *std::ranges::min_element(rowOf(a), rowOf(a) + parameters.classes, isHigher);
  const std::vector<uint32_t> kept = keepBest(parameters, best, boxes, parameters.maxDetections);
  *boxCount = kept.size();
  const uint32_t perBox = std::min(parameters.classes, parameters.classesPerDetection);
  std::vector<Detection> found;
  std::vector<uint32_t> order(parameters.classes);
  for (size_t i = 0; i < kept.size(); ++i) {
    const float* row = rowOf(kept[i]);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order,
                             [&](uint32_t a, uint32_t b) { return isHigherScore(row[a], row[b]); });
    for (uint32_t j = 0; j < perBox; ++j)
      found.push_back({i * parameters.classesPerDetection + j, kept[i], order[j], row[order[j]]});
  }
  return found;
}

void clear(const OperationContext& context, size_t output) {
  if (!context.hasOutput(output)) return;
  const Tensor& tensor = context.outputs[output];
  std::fill_n(tensor.as<float>(), tensor.elementCount(), 0.0f);
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const TfliteDetectionParameters parameters, parseTfliteDetection(context));
  HEARTH_ASSIGN(const std::vector<Box> boxes, decodeAll(context, parameters));
  const RealInput scores(context.inputs[kScores]);
  size_t count = 0;
  std::vector<Detection> found;
  if (parameters.usesRegular) {
    found = detectByClass(parameters, scores.data(), boxes);
    count = found.size();
  } else {
    found = detectByAnchor(parameters, scores.data(), boxes, &count);
  }
  for (size_t i = 0; i < 3; ++i) clear(context, i);
  for (const Detection& detection : found) {
    const Box& box = boxes[detection.anchor];
    if (context.hasOutput(0)) {
      float* corners = context.outputs[0].as<float>() + detection.slot * 4;
      corners[0] = box.top;
      corners[1] = box.left;
      corners[2] = box.bottom;
      corners[3] = box.right;
    }
    if (context.hasOutput(1))
      context.outputs[1].as<float>()[detection.slot] = static_cast<float>(detection.label);
    if (context.hasOutput(2)) context.outputs[2].as<float>()[detection.slot] = detection.score;
  }
  if (context.hasOutput(3)) *context.outputs[3].as<float>() = static_cast<float>(count);
  return {};
}

}  // namespace

Result<TfliteDetectionParameters> parseTfliteDetection(const OperationContext& context) {
  TfliteDetectionParameters parameters;
  HEARTH_TRY(parseShapes(context, &parameters));
  HEARTH_ASSIGN(parameters.maxDetections, positive(context, kMaxDetections));
  HEARTH_ASSIGN(parameters.classesPerDetection, positive(context, kClassesPerDetection));
  HEARTH_ASSIGN(parameters.detectionsPerClass, positive(context, kDetectionsPerClass));
  HEARTH_ASSIGN(parameters.usesRegular, context.scalar<bool>(kUseRegular));
  HEARTH_ASSIGN(parameters.scoreThreshold, context.scalar<float>(kScoreThreshold));
  HEARTH_ASSIGN(parameters.overlapThreshold, context.scalar<float>(kOverlapThreshold));
  if (std::isnan(parameters.scoreThreshold))
    return fail(ErrorCode::kBadData, "The score threshold of {} is no number.", context.describe());
  if (!(parameters.overlapThreshold > 0.0f && parameters.overlapThreshold <= 1.0f))
    return fail(ErrorCode::kBadData, "The overlap threshold of {} is {}, it must be in (0, 1].",
                context.describe(), parameters.overlapThreshold);
  HEARTH_ASSIGN(parameters.scaleY, boxScale(context, kScaleY));
  HEARTH_ASSIGN(parameters.scaleX, boxScale(context, kScaleX));
  HEARTH_ASSIGN(parameters.scaleHeight, boxScale(context, kScaleHeight));
  HEARTH_ASSIGN(parameters.scaleWidth, boxScale(context, kScaleWidth));
  return parameters;
}

const OperationDefinition kTfliteDetectionPostprocessOperation = {
    OperationType::kTfliteDetectionPostprocess, validate, prepare, execute};

}  // namespace hearth::ops
