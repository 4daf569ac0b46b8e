// SPDX-License-Identifier: Apache-2.0
#include "ops/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "drivers/vulkan/lowering/lowering.h"

namespace hearth::vulkan {
namespace {

// Weights of quantised numbers have so many bits behind the point (resize.comp): the weights of
// both sides and a byte together fit into an int32.
constexpr int kWeightBits = 11;

// The elements along one side of the input that make one of the output, and the weight of the
// second.
struct Sample {
  uint32_t first = 0;
  uint32_t second = 0;
  double weight = 0.0;
};

// As the reference kernel computes it, in float32.
Sample nearestSample(const ops::ResizeParameters& p, uint32_t position, uint32_t from,
                     uint32_t to) {
  const float factor = ops::resizeScale(from, to, p.alignCorners);
  const float offset = p.halfPixelCenters ? 0.5f : 0.0f;
  const float at = (static_cast<float>(position) + offset) * factor;
  const float whole = p.alignCorners ? std::round(at) : std::floor(at);
  const uint32_t nearest = std::min(static_cast<uint32_t>(whole), from - 1);
  return {nearest, nearest, 0.0};
}

Sample bilinearSample(const ops::ResizeParameters& p, uint32_t position, uint32_t from,
                      uint32_t to) {
  const double factor =
      p.alignCorners && to > 1 ? (from - 1.0) / (to - 1.0) : double{1} * from / to;
  const double offset = p.halfPixelCenters ? 0.5 : 0.0;
  const double at = std::clamp((position + offset) * factor - offset, 0.0, from - 1.0);
  const auto first = static_cast<uint32_t>(at);
  return {first, std::min(first + 1, from - 1), at - first};
}

Result<std::vector<uint32_t>> samplesOf(const LoweringContext& context,
                                        const ops::ResizeParameters& p,
                                        const ops::ImageShape& input) {
  const bool isNearest =
      context.operation().operation->type == ops::OperationType::kResizeNearestNeighbor;
  const bool isQuantized = graph::isQuantized(context.input(0).type());
  std::vector<uint32_t> words;
  for (const auto& [from, to] :
       {std::pair(input.height, p.outputHeight), std::pair(input.width, p.outputWidth)})
    for (uint32_t i = 0; i < to; ++i) {
      const Sample sample =
          isNearest ? nearestSample(p, i, from, to) : bilinearSample(p, i, from, to);
      uint32_t weight = bitsOf(static_cast<float>(sample.weight));
      if (isQuantized) {
        const double scaled = std::ldexp(sample.weight, kWeightBits);
        weight = static_cast<uint32_t>(scaled);
        if (weight != scaled)
          return fail(ErrorCode::kUnsupported,
                      "The GPU driver has no {} of {} from {} to {} elements: the weights are no "
                      "multiples of 1/{}.",
                      graph::nameOf(context.operation().operation->type),
                      graph::nameOf(context.input(0).type()), from, to, 1 << kWeightBits);
      }
      words.insert(words.end(), {sample.first, sample.second, weight});
    }
  return words;
}

}  // namespace

Status lowerResize(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::ResizeParameters p, ops::parseResize(context.operation()));
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(context.input(0).type()));
  const ops::ImageShape input = ops::ImageShape::of(context.input(0).dimensions, p.isNchw);
  const ops::ImageShape output{input.batches, p.outputHeight, p.outputWidth, input.channels};
  HEARTH_ASSIGN(std::vector<uint32_t> words, samplesOf(context, p, input));
  const uint64_t bytes = words.size() * sizeof(uint32_t);
  const TensorId samples = context.addConstant(
      bytes, [words = std::move(words), bytes]() -> Result<std::vector<uint8_t>> {
        std::vector<uint8_t> made(bytes);
        std::memcpy(made.data(), words.data(), bytes);
        return made;
      });
  Dispatch dispatch;
  dispatch.shader = "resize." + suffix;
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}, {samples}};
  dispatch.parameters = {output.batches, output.height, output.width, output.channels};
  appendStrides(ops::ImageLayout(input, p.isNchw), &dispatch.parameters);
  appendStrides(ops::ImageLayout(output, p.isNchw), &dispatch.parameters);
  return context.addRow(std::move(dispatch), context.output(0).elementCount());
}

}  // namespace hearth::vulkan
