// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/log_softmax.h"

#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "drivers/cpu/kernels/function_kernel.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/lowering/unary_lookup_table.h"
#include "drivers/cpu/microkernels/portable/byte_softmax.h"
#include "drivers/cpu/microkernels/portable/vector_math.h"
#include "ops/softmax.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

constexpr size_t kLanes = 16;

void computeFloats(const float* source, float* target, size_t size, float beta) {
  base::onWidestVectors([=]() HEARTH_INLINE {
    const size_t whole = size / kLanes * kLanes;
    float lanes[kLanes];
    float greatest = -std::numeric_limits<float>::infinity();
    for (float& lane : lanes) lane = greatest;
    for (size_t i = 0; i < whole; i += kLanes)
      for (size_t j = 0; j < kLanes; ++j)
        lanes[j] = source[i + j] > lanes[j] ? source[i + j] : lanes[j];
    for (const float lane : lanes) greatest = lane > greatest ? lane : greatest;
    for (size_t i = whole; i < size; ++i) greatest = source[i] > greatest ? source[i] : greatest;
    double sums[kLanes] = {};
    for (size_t i = 0; i < whole; i += kLanes)
      for (size_t j = 0; j < kLanes; ++j)
        sums[j] += static_cast<double>(expVector((source[i + j] - greatest) * beta));
    double sum = 0.0;
    for (const double part : sums) sum += part;
    for (size_t i = whole; i < size; ++i)
      sum += static_cast<double>(expVector((source[i] - greatest) * beta));
    const double logarithm = std::log(sum);
    const double factor = beta;
#pragma GCC ivdep
    for (size_t i = 0; i < size; ++i)
      target[i] =
          static_cast<float>(static_cast<double>(source[i] - greatest) * factor - logarithm);
  });
}

struct Bytes {
  // By the distance from the greatest number of the row: the exponent of e, and the power.
  std::array<double, 256> exponents{};
  std::array<float, 256> powers{};
  uint8_t flip = 0;  // exclusive-or that makes signed numbers compare as unsigned ones
  double scale = 0, zeroPoint = 0, lowest = 0, highest = 0;
};

void computeBytes(const Bytes& b, const uint8_t* source, uint8_t* target, size_t size) {
  distancesFromGreatest(source, target, size, b.flip);
  const double logarithm = std::log(sumOfPowers(b.powers.data(), target, size));
  // Computes the result of each distance first, then looks up that of each number. No result is
  // positive.
  uint8_t results[256];
  const double* exponents = b.exponents.data();
  const double scale = b.scale;
  const double zeroPoint = b.zeroPoint;
  const double lowest = b.lowest;
  const double highest = b.highest;
  uint8_t* made = results;
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t distance = 0; distance < 256; ++distance) {
      const double value =
          static_cast<double>(static_cast<float>(exponents[distance] - logarithm)) / scale;
      const double whole = std::trunc(value);
      double shifted = whole - (value - whole <= -0.5 ? 1.0 : 0.0) + zeroPoint;
      shifted = shifted < lowest ? lowest : shifted;
      shifted = shifted > highest ? highest : shifted;
      made[distance] = static_cast<uint8_t>(static_cast<int32_t>(shifted));
    }
  });
  lookUp(results, target, target, size);
}

}  // namespace

Result<bool> lowerLogSoftmax(PlanBuilder* builder) {
  HEARTH_ASSIGN(const auto parameters, ops::parseSoftmax(builder->context()));
  const ops::Tensor& tensor = builder->context().inputs[0];
  const graph::Operand& from = *tensor.operand;
  const graph::Operand& to = *builder->context().outputs[0].operand;
  if (parameters.axis + 1 != tensor.rank()) return builder->decline(kNotLastAxis);
  if (tensor.elementCount() == 0) return false;
  const bool isFloat = from.type == graph::OperandType::kTensorFloat32;
  const bool isSigned = from.type == graph::OperandType::kTensorQuant8AsymmSigned;
  if (!isFloat && !isSigned && from.type != graph::OperandType::kTensorQuant8Asymm)
    return builder->decline(kOnlyFloat32Or8Bits);
  const float beta = parameters.beta;
  const auto bytes = std::make_shared<Bytes>();
  if (!isFloat) {
    for (size_t i = 0; i < 256; ++i) {
      bytes->exponents[i] =
          -static_cast<double>(from.scale) * static_cast<double>(i) * static_cast<double>(beta);
      bytes->powers[i] = static_cast<float>(std::exp(bytes->exponents[i]));
    }
    bytes->flip = isSigned ? 0x80 : 0;
    bytes->scale = to.scale;
    bytes->zeroPoint = to.zeroPoint;
    bytes->lowest = isSigned ? -128 : 0;
    bytes->highest = isSigned ? 127 : 255;
  }
  const size_t size = tensor.dimensions.back();
  const uint64_t rows = tensor.elementCount() / size;
  const ValueId source = builder->read(builder->context().operation->inputs[0]);
  const ValueId destination = builder->write(builder->context().operation->outputs[0]);
  builder->add("own", {source}, {destination}).create = [=] {
    return makeFunctionKernel([=](const KernelRun& run) -> Status {
      const uint64_t grain = threads::grainOf(16 * size);
      threads::forRanges(run.pool, rows, grain, [&](uint64_t begin, uint64_t end) {
        for (uint64_t row = begin; row < end; ++row) {
          if (isFloat)
            computeFloats(run.at<float>(source) + row * size,
                          run.at<float>(destination) + row * size, size, beta);
          else
            computeBytes(*bytes, run.at<uint8_t>(source) + row * size,
                         run.at<uint8_t>(destination) + row * size, size);
        }
      });
      return {};
    });
  };
  return true;
}

}  // namespace hearth::cpu
