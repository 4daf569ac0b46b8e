// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// The arguments of TFLITE_DETECTION_POSTPROCESS.
struct TfliteDetectionParameters {
  uint32_t anchors = 0;
  uint32_t encodingSize = 0;  // numbers for each anchor, of which the first four are the box
  uint32_t columns = 0;       // of the class predictions
  uint32_t firstClass = 0;    // 1 where column 0 is the background
  uint32_t classes = 0;       // without the background
  uint32_t maxDetections = 0;
  uint32_t classesPerDetection = 0;
  uint32_t detectionsPerClass = 0;
  bool usesRegular = false;
  float scoreThreshold = 0.0f;    // a number
  float overlapThreshold = 0.0f;  // in (0, 1]
  float scaleY = 1.0f;            // the scales are finite and not 0
  float scaleX = 1.0f;
  float scaleHeight = 1.0f;
  float scaleWidth = 1.0f;
};

// kBadData for shapes that do not fit each other, counts below 1, and thresholds and scales that
// are not as above.
Result<TfliteDetectionParameters> parseTfliteDetection(const OperationContext& context);

}  // namespace hearth::ops
