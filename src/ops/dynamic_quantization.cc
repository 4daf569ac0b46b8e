// SPDX-License-Identifier: Apache-2.0
#include "ops/dynamic_quantization.h"

#include <algorithm>
#include <cmath>

#include "ops/weight_rows.h"

namespace hearth::ops {

bool isHybrid(const OperationContext& context) {
  return context.inputs[0].type() == OperandType::kTensorFloat32 &&
         kQuantizedWeights.contains(context.inputs[1].type());
}

std::vector<float> roundToDynamicSteps(const float* values, size_t rows, size_t rowSize) {
  std::vector<float> rounded(values, values + rows * rowSize);
  for (size_t r = 0; r < rows; ++r) {
    float* row = rounded.data() + r * rowSize;
    float least = 0.0f;
    float greatest = 0.0f;
    bool isFinite = true;
    for (size_t i = 0; i < rowSize; ++i) {
      least = std::min(least, row[i]);
      greatest = std::max(greatest, row[i]);
      isFinite = isFinite && std::isfinite(row[i]);
    }
    const float scale = (greatest - least) / 255.0f;
    if (!isFinite || !std::isnormal(scale)) continue;
    const float zeroPoint = std::nearbyint(-128.0f - least / scale);
    for (size_t i = 0; i < rowSize; ++i) {
      const float step = std::clamp(std::nearbyint(row[i] / scale) + zeroPoint, -128.0f, 127.0f);
      row[i] = (step - zeroPoint) * scale;
    }
  }
  return rounded;
}

}  // namespace hearth::ops
