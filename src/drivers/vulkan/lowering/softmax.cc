// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "drivers/vulkan/lowering/lowering.h"
#include "drivers/vulkan/lowering/tables.h"

namespace hearth::vulkan {
namespace {

// softmax_quantized.comp: the bits of powers behind the point, and the only scale of results.
constexpr int kPowerBits = 52;
constexpr float kResultScale = 1.0f / 256;
constexpr uint32_t kDistances = 256;  // of two bytes

// For each distance from the greatest of a row the power of e that it stands for.
std::vector<uint8_t> powersOf(double scale) {
  std::vector<uint64_t> powers;
  for (uint32_t distance = 0; distance < kDistances; ++distance)
    powers.push_back(
        static_cast<uint64_t>(std::llround(std::ldexp(std::exp(-scale * distance), kPowerBits))));
  std::vector<uint8_t> bytes(powers.size() * sizeof(uint64_t));
  std::memcpy(bytes.data(), powers.data(), bytes.size());
  return bytes;
}

// Makes the dispatch one of quantised numbers.
Status quantize(LoweringContext& context, double beta, Dispatch* dispatch) {
  const ops::Tensor& input = context.input(0);
  const graph::Operand& output = *context.output(0).operand;
  if (dispatch->constant != 0 || output.scale != kResultScale)
    return fail(ErrorCode::kUnsupported,
                "The GPU driver has no {} of {} with a result of scale {}.",
                graph::nameOf(context.operation().operation->type), graph::nameOf(input.type()),
                output.scale);
  const double scale = beta * input.operand->scale;
  dispatch->bindings.push_back(
      {context.addConstant(kDistances * sizeof(uint64_t),
                           [scale]() -> Result<std::vector<uint8_t>> { return powersOf(scale); })});
  const int32_t lowest = lowestStored(output.type);
  dispatch->parameters.back() = bitsOf(output.zeroPoint);
  dispatch->parameters.insert(dispatch->parameters.end(), {bitsOf(lowest), bitsOf(lowest + 255)});
  return {};
}

}  // namespace

Status lowerSoftmax(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::SoftmaxParameters p, ops::parseSoftmax(context.operation()));
  const ops::Tensor& input = context.input(0);
  const bool isQuantized = graph::isQuantized(input.type());
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(input.type()));
  uint32_t step = 1;
  for (size_t i = p.axis + 1; i < input.rank(); ++i) step *= input.dimensions[i];
  const uint32_t length = input.dimensions[p.axis];
  const auto rows = static_cast<uint32_t>(input.elementCount() / length);
  Dispatch dispatch;
  dispatch.shader = (isQuantized ? "softmax_quantized." : "softmax.") + suffix;
  dispatch.constant = context.operation().operation->type == ops::OperationType::kLogSoftmax;
  dispatch.bindings = {{context.inputTensor(0)}, {context.outputTensor(0), true}};
  dispatch.parameters = {rows, length, step, bitsOf(p.beta)};
  if (isQuantized) HEARTH_TRY(quantize(context, p.beta, &dispatch));
  return context.addRows(std::move(dispatch), rows);
}

}  // namespace hearth::vulkan
