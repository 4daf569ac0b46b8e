// SPDX-License-Identifier: Apache-2.0
// LSH_PROJECTION: each seed gives one bit, the sign of the weighted sum of the fingerprints of
// (seed, item) over all items.
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/fingerprint.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/recurrent_activation.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kSeeds, kItems, kWeights, kKind };
// What the output holds.
enum Kind : int32_t {
  kSparseWithoutOffset = 1,  // one number for each row of seeds
  kDense = 2,                // one number for each bit
  kSparse = 3,               // as 1, with the row's own range of numbers
};

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(4, 1));
  HEARTH_TRY(signature.inputTensor(kSeeds, kFloatTensors, 2, 2));
  HEARTH_TRY(signature.inputTensor(kItems, kMovableTensors, 1, kMaximumRank));
  HEARTH_TRY(signature.optionalInputType(kWeights, kFloatTensors));
  HEARTH_TRY(signature.inputRank(kWeights, 1, 1));
  HEARTH_TRY(signature.inputType(kKind, OperandType::kInt32));
  return signature.outputType(0, OperandType::kTensorInt32);
}

Result<Kind> parseKind(const OperationContext& context) {
  HEARTH_ASSIGN(const int32_t kind, context.scalar<int32_t>(kKind));
  if (kind < kSparseWithoutOffset || kind > kSparse)
    return fail(ErrorCode::kBadData, "The type of {} is {}, it must be 1, 2 or 3.",
                context.describe(), kind);
  return static_cast<Kind>(kind);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireRank(context, kSeeds, 2, 2));
  HEARTH_TRY(requireRank(context, kItems, 1, kMaximumRank));
  HEARTH_ASSIGN(const Kind kind, parseKind(context));
  const Dimensions& seeds = context.inputs[kSeeds].dimensions;
  // With one bit more, a row's number would not fit the output.
  if (kind != kDense && seeds[1] > 31)
    return fail(ErrorCode::kBadData, "{} has {} bits for each number, at most 31 fit.",
                context.describe(), seeds[1]);
  const uint32_t items = context.inputs[kItems].dimensions[0];
  if (isGiven(context, kWeights) && context.inputs[kWeights].dimensions != Dimensions{items})
    return fail(ErrorCode::kBadData, "{} has weights of the shape {} for {} items.",
                context.describe(), graph::describeDimensions(context.inputs[kWeights].dimensions),
                items);
  const uint64_t bits = uint64_t{seeds[0]} * seeds[1];
  if (bits > UINT32_MAX)
    return fail(ErrorCode::kBadData, "{} has {} seeds.", context.describe(), bits);
  return context.setOutputDimensions(0, {kind == kDense ? static_cast<uint32_t>(bits) : seeds[0]});
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Kind kind, parseKind(context));
  const Tensor& seeds = context.inputs[kSeeds];
  const Tensor& items = context.inputs[kItems];
  const size_t seedBytes = graph::elementSize(seeds.type());
  const size_t itemCount = items.dimensions[0];
  const size_t itemBytes =
      itemCount == 0 ? 0 : items.elementCount() / itemCount * graph::elementSize(items.type());
  std::vector<float> weights(itemCount, 1.0f);
  if (isGiven(context, kWeights)) {
    const RealInput given(context.inputs[kWeights]);
    weights.assign(given.begin(), given.end());
  }
  std::vector<uint8_t> key(seedBytes + itemBytes);
  const auto signOf = [&](size_t seed) -> int32_t {
    std::memcpy(key.data(), seeds.as<uint8_t>() + seed * seedBytes, seedBytes);
    double score = 0.0;
    for (size_t i = 0; i < itemCount; ++i) {
      std::memcpy(key.data() + seedBytes, items.as<uint8_t>() + i * itemBytes, itemBytes);
      score += static_cast<double>(weights[i]) *
               static_cast<double>(static_cast<int64_t>(fingerprint64(key)));
    }
    return score > 0.0 ? 1 : 0;
  };
  const size_t rows = seeds.dimensions[0];
  const size_t bits = seeds.dimensions[1];
  int32_t* target = context.outputs[0].as<int32_t>();
  for (size_t row = 0; row < rows; ++row) {
    uint32_t number = 0;
    for (size_t bit = 0; bit < bits; ++bit) {
      const int32_t sign = signOf(row * bits + bit);
      if (kind == kDense) target[row * bits + bit] = sign;
      number = number << 1 | static_cast<uint32_t>(sign);
    }
    if (kind == kDense) continue;
    const uint32_t offset = kind == kSparse ? static_cast<uint32_t>(row) << bits : 0;
    target[row] = static_cast<int32_t>(number + offset);
  }
  return {};
}

}  // namespace

const OperationDefinition kLshProjectionOperation = {OperationType::kLshProjection, validate,
                                                     prepare, execute};

}  // namespace hearth::ops
