// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/quantized_softmax.h"

#include <array>
#include <cmath>
#include <memory>

#include "base/vector_dispatch.h"
#include "drivers/cpu/kernels/function_kernel.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/lowering/unary_lookup_table.h"
#include "drivers/cpu/microkernels/portable/byte_softmax.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

struct Softmax {
  // By distance from the greatest number of the row: e^(-beta * scale * distance).
  std::array<float, 256> powers{};
  uint8_t flip = 0;  // exclusive-or that makes signed numbers compare as unsigned ones
  float outputScale = 0;
  int32_t zeroPoint = 0, lowest = 0, highest = 0;
  size_t channels = 0;
};

void computeRow(const Softmax& s, const uint8_t* source, uint8_t* target) {
  const float* powers = s.powers.data();
  distancesFromGreatest(source, target, s.channels, s.flip);
  const double sum = sumOfPowers(powers, target, s.channels);
  // Computes the result of each distance first, then looks up that of each number. No result is
  // negative, so adding a half rounds.
  const auto factor = static_cast<float>(1.0 / (sum * s.outputScale));
  uint8_t results[256];
  uint8_t* made = results;
  const int32_t zeroPoint = s.zeroPoint;
  const int32_t lowest = s.lowest;
  const int32_t highest = s.highest;
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t distance = 0; distance < 256; ++distance) {
      const float scaled = powers[distance] * factor + 0.5f;
      const auto steps = static_cast<int32_t>(scaled < 65536.0f ? scaled : 65536.0f) + zeroPoint;
      const int32_t raised = steps < lowest ? lowest : steps;
      made[distance] = static_cast<uint8_t>(raised > highest ? highest : raised);
    }
  });
  lookUp(results, target, target, s.channels);
}

}  // namespace

Result<bool> addQuantizedSoftmax(PlanBuilder* builder, uint32_t input, uint32_t output,
                                 float beta) {
  const graph::Operand& from = builder->operand(input);
  const graph::Operand& to = builder->operand(output);
  const bool isSigned = from.type == graph::OperandType::kTensorQuant8AsymmSigned;
  if (from.type == graph::OperandType::kTensorFloat32) return builder->decline("its beta is not 1");
  if ((!isSigned && from.type != graph::OperandType::kTensorQuant8Asymm) || to.type != from.type)
    return builder->decline(kOnlyFloat32Or8Bits);
  Softmax softmax;
  for (size_t i = 0; i < softmax.powers.size(); ++i)
    softmax.powers[i] = static_cast<float>(
        std::exp(-static_cast<double>(beta) * from.scale * static_cast<double>(i)));
  softmax.flip = isSigned ? 0x80 : 0;
  softmax.outputScale = to.scale;
  softmax.zeroPoint = to.zeroPoint;
  softmax.lowest = isSigned ? -128 : 0;
  softmax.highest = isSigned ? 127 : 255;
  const ops::Tensor& tensor = builder->tensor(input);
  softmax.channels = tensor.dimensions.back();
  const uint64_t rows = tensor.elementCount() / softmax.channels;
  const ValueId source = builder->read(input);
  const ValueId destination = builder->write(output);
  builder->add("own", {source}, {destination}).create =
      [=, shared = std::make_shared<const Softmax>(softmax)] {
        return makeFunctionKernel([=](const KernelRun& run) -> Status {
          const size_t channels = shared->channels;
          // Three passes and a table are more work than a copy.
          const uint64_t grain = threads::grainOf(8 * channels);
          threads::forRanges(run.pool, rows, grain, [&](uint64_t begin, uint64_t end) {
            for (uint64_t row = begin; row < end; ++row)
              computeRow(*shared, run.at<uint8_t>(source) + row * channels,
                         run.at<uint8_t>(destination) + row * channels);
          });
          return {};
        });
      };
  return true;
}

}  // namespace hearth::cpu
