// SPDX-License-Identifier: Apache-2.0
// The last steps of object detectors: decoding boxes and suppressing those that overlap.
#include <limits>

#include "frontends/tflite/translators/custom_options.h"
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperationType;
using schema::BuiltinOperator;

Status translateDetectionPostprocess(OperatorView& view, OperationType type) {
  // TFLite's own default.
  constexpr int32_t kDetectionsPerClass = 100;
  HEARTH_ASSIGN(const FlexAttributes options, customOptions(view));
  HEARTH_ASSIGN(const int32_t maxDetections, countOption(options, "max_detections"));
  HEARTH_ASSIGN(const int32_t classesPerDetection,
                countOption(options, "max_classes_per_detection"));
  HEARTH_ASSIGN(const int32_t detectionsPerClass,
                countOption(options, "detections_per_class", kDetectionsPerClass));
  HEARTH_ASSIGN(const int32_t classes, countOption(options, "num_classes"));
  const int64_t slots = int64_t{maxDetections} * classesPerDetection;
  if (slots > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kBadData, "It asks for {} detections of {} classes each.", maxDetections,
                classesPerDetection);
  std::vector<uint32_t> inputs;
  for (size_t i = 0; i < 3; ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    inputs.push_back(input);
  }
  for (const int32_t value : {maxDetections, classesPerDetection, detectionsPerClass}) {
    HEARTH_ASSIGN(const uint32_t scalar, view.scalar(value));
    inputs.push_back(scalar);
  }
  HEARTH_ASSIGN(const uint32_t regular,
                view.scalar(options.truth("use_regular_nms").value_or(false)));
  inputs.push_back(regular);
  for (const char* name : {"nms_score_threshold", "nms_iou_threshold"}) {
    HEARTH_ASSIGN(const float value, floatOption(options, name));
    HEARTH_ASSIGN(const uint32_t scalar, view.scalar(value));
    inputs.push_back(scalar);
  }
  HEARTH_ASSIGN(const uint32_t classCount, view.scalar(classes));
  inputs.push_back(classCount);
  for (const char* name : {"y_scale", "x_scale", "h_scale", "w_scale"}) {
    HEARTH_ASSIGN(const float value, floatOption(options, name));
    HEARTH_ASSIGN(const uint32_t scalar, view.scalar(value));
    inputs.push_back(scalar);
  }
  const auto listed = static_cast<uint32_t>(slots);
  HEARTH_ASSIGN(const uint32_t boxes, outputOfShape(view, 0, {1, listed, 4}));
  HEARTH_ASSIGN(const uint32_t labels, outputOfShape(view, 1, {1, listed}));
  HEARTH_ASSIGN(const uint32_t scores, outputOfShape(view, 2, {1, listed}));
  HEARTH_ASSIGN(const uint32_t count, outputOfShape(view, 3, {1}));
  return view.emit(type, std::move(inputs), {boxes, labels, scores, count});
}

// V4 has five inputs; V5 also the deviation of soft suppression, and writes the scores.
template <bool kIsSoft>
Status translateNonMaxSuppression(OperatorView& view, OperationType type) {
  constexpr size_t kInputs = kIsSoft ? 6 : 5;
  std::vector<uint32_t> inputs;
  for (size_t i = 0; i < kInputs; ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    inputs.push_back(input);
  }
  // A dimension of 0 is known only at run time.
  uint32_t length = 0;
  if (view.operand(inputs[2]).isConstant()) {
    HEARTH_ASSIGN(const int32_t value, view.constantInt(2));
    if (value < 1)
      return fail(ErrorCode::kBadData, "It keeps at most {} boxes, it must be one or more.", value);
    length = static_cast<uint32_t>(value);
  }
  HEARTH_ASSIGN(const uint32_t indices, outputOfShape(view, 0, {length}));
  if constexpr (kIsSoft) {
    HEARTH_ASSIGN(const uint32_t scores, outputOfShape(view, 1, {length}));
    HEARTH_ASSIGN(const uint32_t count, outputOfShape(view, 2, {}));
    return view.emit(type, std::move(inputs), {indices, count, scores});
  } else {
    HEARTH_ASSIGN(const uint32_t count, outputOfShape(view, 1, {}));
    return view.emit(type, std::move(inputs), {indices, count});
  }
}

}  // namespace

std::span<const TranslatorEntry> detectionTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::NON_MAX_SUPPRESSION_V4, translateNonMaxSuppression<false>,
       OperationType::kNonMaxSuppression},
      {BuiltinOperator::NON_MAX_SUPPRESSION_V5, translateNonMaxSuppression<true>,
       OperationType::kNonMaxSuppression},
  };
  return kTranslators;
}

std::span<const CustomTranslatorEntry> detectionCustomTranslators() {
  static constexpr CustomTranslatorEntry kCustomTranslators[] = {
      {"TFLite_Detection_PostProcess",
       {BuiltinOperator::CUSTOM, translateDetectionPostprocess,
        OperationType::kTfliteDetectionPostprocess}},
  };
  return kCustomTranslators;
}

}  // namespace hearth::tflite
