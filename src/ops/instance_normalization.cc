// SPDX-License-Identifier: Apache-2.0
// INSTANCE_NORMALIZATION: normalises each channel of each image by its own mean and variance.
// Inputs: data, gamma, beta, epsilon, layout.
#include <cmath>

#include "ops/padding.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

struct Parameters {
  float gamma = 1.0f;
  float beta = 0.0f;
  float epsilon = 0.0f;
  bool isNchw = false;
};

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(5, 1));
  HEARTH_TRY(signature.inputType(0, kFloatTensors));
  for (size_t i = 1; i < 4; ++i) HEARTH_TRY(signature.floatScalar(i, 0));
  HEARTH_TRY(signature.inputType(4, OperandType::kBool));
  HEARTH_TRY(signature.inputRank(0, 4, 4));
  return signature.outputTypeLike(0, 0);
}

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 5, 1));
  HEARTH_TRY(requireRank(context, 0, 4, 4));
  Parameters p;
  HEARTH_ASSIGN(p.gamma, floatScalar(context, 1));
  HEARTH_ASSIGN(p.beta, floatScalar(context, 2));
  HEARTH_ASSIGN(p.epsilon, floatScalar(context, 3));
  HEARTH_ASSIGN(p.isNchw, context.scalar<bool>(4));
  return p;
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters p, parse(context));
  const ImageShape shape = ImageShape::of(context.inputs[0].dimensions, p.isNchw);
  const ImageLayout layout(shape, p.isNchw);
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  const double count = static_cast<double>(shape.height) * shape.width;
  const auto forEachPixel = [&](size_t batch, size_t channel, const auto& visit) {
    for (uint32_t y = 0; y < shape.height; ++y) {
      for (uint32_t x = 0; x < shape.width; ++x)
        visit(layout.offset(batch, y, x) + channel * layout.channelStride);
    }
  };
  for (size_t b = 0; b < shape.batches; ++b) {
    for (size_t c = 0; c < shape.channels; ++c) {
      double sum = 0.0;
      forEachPixel(b, c, [&](size_t i) { sum += input[i]; });
      const double mean = sum / count;
      double squares = 0.0;
      forEachPixel(b, c, [&](size_t i) { squares += (input[i] - mean) * (input[i] - mean); });
      const double factor = p.gamma / std::sqrt(squares / count + p.epsilon);
      forEachPixel(b, c, [&](size_t i) {
        output[i] = static_cast<float>((input[i] - mean) * factor + p.beta);
      });
    }
  }
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kInstanceNormalizationOperation = {
    OperationType::kInstanceNormalization, validate, prepareLikeInput<parse>, execute};

}  // namespace hearth::ops
