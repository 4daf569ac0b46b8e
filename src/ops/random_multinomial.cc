// SPDX-License-Identifier: Apache-2.0
// RANDOM_MULTINOMIAL: class numbers drawn with the probabilities softmax(logits).
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

// A counter that is put through a mixing function. Different seeds give independent sequences;
// equal seeds give equal ones.
class RandomSequence {
 public:
  explicit RandomSequence(uint64_t seed) : counter_(seed) {}

  // Uniformly distributed over [0, 1).
  double next() {
    counter_ += 0x9E3779B97F4A7C15u;
    uint64_t bits = counter_;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    bits ^= bits >> 31;
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }

 private:
  uint64_t counter_;
};

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputTensor(0, kFloatTensors, 2, 2));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  HEARTH_TRY(signature.inputTensor(2, OperandType::kTensorInt32, 1, 1));
  return signature.outputType(0, OperandType::kTensorInt32);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  HEARTH_TRY(requireRank(context, 0, 2, 2));
  HEARTH_ASSIGN(const int32_t samples, context.scalar<int32_t>(1));
  if (samples < 1 || context.inputs[0].dimensions[1] == 0)
    return fail(ErrorCode::kBadData, "{} draws {} samples from {} classes.", context.describe(),
                samples, context.inputs[0].dimensions[1]);
  if (context.inputs[2].elementCount() != 2)
    return fail(ErrorCode::kBadData, "{} has {} seeds, it must have 2.", context.describe(),
                context.inputs[2].elementCount());
  return context.setOutputDimensions(
      0, {context.inputs[0].dimensions[0], static_cast<uint32_t>(samples)});
}

Status execute(OperationContext& context) {
  const RealInput logits(context.inputs[0]);
  const size_t classes = context.inputs[0].dimensions[1];
  HEARTH_ASSIGN(const int32_t samples, context.scalar<int32_t>(1));
  const uint32_t* seeds = context.inputs[2].as<uint32_t>();
  RandomSequence random(uint64_t{seeds[0]} << 32 | seeds[1]);
  int32_t* target = context.outputs[0].as<int32_t>();
  std::vector<double> cumulative(classes);
  for (size_t batch = 0; batch < context.inputs[0].dimensions[0]; ++batch) {
    const float* row = logits.data() + batch * classes;
    const float largest = *std::max_element(row, row + classes);
    double total = 0.0;
    for (size_t i = 0; i < classes; ++i) {
      const double weight = std::exp(static_cast<double>(row[i]) - static_cast<double>(largest));
      if (std::isfinite(weight)) total += weight;
      cumulative[i] = total;
    }
    for (int32_t i = 0; i < samples; ++i) {
      const double drawn = random.next() * total;
      const auto at = std::upper_bound(cumulative.begin(), cumulative.end(), drawn);
      *target++ = static_cast<int32_t>(
          std::min<ptrdiff_t>(at - cumulative.begin(), static_cast<ptrdiff_t>(classes) - 1));
    }
  }
  return {};
}

}  // namespace

const OperationDefinition kRandomMultinomialOperation = {OperationType::kRandomMultinomial,
                                                         validate, prepare, execute};

}  // namespace hearth::ops
