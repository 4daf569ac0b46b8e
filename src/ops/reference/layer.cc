// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/layer.h"

#include <algorithm>
#include <cmath>

#include "ops/quantization.h"

namespace hearth::ops::reference {

bool areStepsSummed(const OperationContext& context) {
  return graph::isQuantized(context.inputs[0].type());
}

bool isHybridLayer(const OperationContext& context) {
  const OperandType filter = context.inputs[1].type();
  return context.inputs[0].type() == OperandType::kTensorFloat32 &&
         filter != OperandType::kTensorFloat32 && filter != OperandType::kTensorFloat16;
}

std::vector<double> roundedRows(const Tensor& data, int64_t rows) {
  std::vector<double> values(static_cast<size_t>(countOf(data.dimensions)));
  const size_t size = rows == 0 ? 0 : values.size() / static_cast<size_t>(rows);
  for (size_t first = 0; first + size <= values.size() && size > 0; first += size) {
    const float* row = data.as<float>() + first;
    float least = 0;
    float greatest = 0;
    bool isFinite = true;
    for (size_t i = 0; i < size; ++i) {
      least = std::min(least, row[i]);
      greatest = std::max(greatest, row[i]);
      isFinite = isFinite && std::isfinite(row[i]);
    }
    const float scale = (greatest - least) / 255.0f;
    const float zeroPoint = std::nearbyint(-128.0f - least / scale);
    for (size_t i = 0; i < size; ++i) {
      values[first + i] = row[i];
      if (!isFinite || !std::isnormal(scale)) continue;
      const float step = std::clamp(std::nearbyint(row[i] / scale) + zeroPoint, -128.0f, 127.0f);
      values[first + i] = (step - zeroPoint) * scale;
    }
  }
  return values;
}

double wrappedSum(double sum) {
  return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(sum)));
}

std::vector<double> weightsAt(const OperationContext& context, int64_t first, int64_t step,
                              int64_t count) {
  const Tensor& filter = context.inputs[1];
  const bool areSteps = areStepsSummed(context);
  std::vector<double> weights;
  weights.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = first + i * step;
    weights.push_back(areSteps ? storedAt(filter, place) - filter.operand->zeroPoint
                               : realAt(filter, place));
  }
  return weights;
}

LayerOutput::LayerOutput(const OperationContext& context, FusedActivation activation)
    : context_(context),
      activation_(activation),
      range_(quantizedActivationRange(activation, *context.outputs[0].operand)) {}

void LayerOutput::put(int64_t place, int64_t channel, double sum) const {
  const Tensor& output = context_.outputs[0];
  const bool hasBias = context_.hasInput(2);
  if (!areStepsSummed(context_)) {
    if (hasBias) sum += realAt(context_.inputs[2], channel);
    return putReal(output, place, activate(sum, activation_));
  }
  // The bias is in steps of data scale times filter scale.
  if (hasBias) sum += static_cast<double>(integerAt(context_.inputs[2], channel));
  if (output.type() != OperandType::kTensorQuant16Symm) sum = wrappedSum(sum);
  const graph::Operand& filter = *context_.inputs[1].operand;
  const double filterScale = filter.perChannel.scales.empty()
                                 ? filter.scale
                                 : filter.perChannel.scales[static_cast<size_t>(channel)];
  const double ratio = context_.inputs[0].operand->scale / double{output.operand->scale};
  putStored(output, place,
            roundAndClamp(sum * (ratio * filterScale), output.operand->zeroPoint, range_.lowest,
                          range_.highest));
}

}  // namespace hearth::ops::reference
