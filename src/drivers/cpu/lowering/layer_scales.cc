// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/layer_scales.h"

#include <algorithm>
#include <vector>

#include "drivers/cpu/kernels/xnn_kernel.h"

namespace hearth::cpu {
namespace {

constexpr float kLeast = 0x1p-32f;
constexpr float kBeyond = 0x1p8f;

// Whether neither the filter's scale nor its product with the input's can be too small or too large
// for a normal float32, if the factor is within the limits.
bool areUsual(float input, float output) {
  return input >= 0x1p-60f && input <= 0x1p30f && output >= 0x1p-60f && output <= 0x1p60f;
}

float fittingFactor(float input, float filter, float output) {
  // In XNNPACK's order, which decides how it is rounded.
  const float factor = input * filter / output;
  if (areUsual(input, output) && factor >= kLeast) return factor;
  return std::max(kLeast, static_cast<float>(static_cast<double>(input) * filter / output));
}

}  // namespace

bool LayerScales::areLow(const graph::Operand& inputOperand, const graph::Operand& filterOperand,
                         const graph::Operand& outputOperand) {
  if (!graph::isQuantized(inputOperand.type)) return true;
  const graph::ChannelScales& channels = filterOperand.perChannel.scales;
  const float greatest =
      channels.empty() ? filterOperand.scale : *std::max_element(channels.begin(), channels.end());
  const double factor = static_cast<double>(inputOperand.scale) * greatest / outputOperand.scale;
  return static_cast<float>(factor) < kBeyond;
}

LayerScales LayerScales::of(const graph::Operand& inputOperand, const graph::Operand& filterOperand,
                            const graph::Operand& outputOperand) {
  LayerScales scales = {inputOperand.scale, filterOperand.scale, outputOperand.scale,
                        filterOperand.perChannel.scales};
  if (!graph::isQuantized(inputOperand.type)) return scales;
  const float in = scales.input;
  const float out = scales.output;
  if (areUsual(in, out) && requantizationFits(inputOperand, filterOperand, outputOperand))
    return scales;
  if (scales.channels.empty()) return {1.0f, fittingFactor(in, scales.filter, out), 1.0f, {}};
  std::vector<float> factors;
  factors.reserve(scales.channels.size());
  for (const float channel : scales.channels) factors.push_back(fittingFactor(in, channel, out));
  return {1.0f, 0.0f, 1.0f, graph::ChannelScales(factors)};
}

std::shared_ptr<const float> LayerScales::from(size_t first, size_t count) const {
  if (!channels.empty()) return channels.from(first);
  return graph::ChannelScales(count - first, filter).from(0);
}

}  // namespace hearth::cpu
