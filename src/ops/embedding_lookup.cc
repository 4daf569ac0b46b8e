// SPDX-License-Identifier: Apache-2.0
// EMBEDDING_LOOKUP. Inputs: row numbers, table. Beyond NNAPI, the output of a table of 8 or 4 bits
// may be float32, and a TENSOR_INT4 table may be followed by its block scales.
#include "base/vector_dispatch.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/short_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "ops/weight_rows.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

constexpr size_t kBlockScales = 2;

Status validateTypes(const Signature& signature) {
  if (!signature.isInputOfType(1, kQuantizedWeights) || signature.outputCount() == 0 ||
      signature.output(0).type != OperandType::kTensorFloat32) {
    HEARTH_TRY(signature.counts(2, 1));
    HEARTH_TRY(signature.inputType(1, kMovedTensors));
    HEARTH_TRY(signature.outputTypeLike(0, 1));
    return signature.outputQuantizationLike(0, 1);
  }
  HEARTH_TRY(signature.counts(2, 3, 1));
  const graph::PerChannelQuantization& scales = signature.input(1).perChannel;
  if (!scales.scales.empty() && scales.channelDim != 0)
    return fail(ErrorCode::kBadData, "The table of {} has scales along dimension {}, it must be 0.",
                signature.describe(), scales.channelDim);
  return validateWeightScales(signature, 1, kBlockScales);
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.inputTensor(0, OperandType::kTensorInt32, 1, 1));
  HEARTH_TRY(signature.inputRank(1, 1, kMaximumRank));
  return validateTypes(signature);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireRank(context, 0, 1, 1));
  HEARTH_TRY(requireRank(context, 1, 1, kMaximumRank));
  HEARTH_TRY(checkBlockScales(context, 1, kBlockScales));
  Dimensions dimensions = context.inputs[1].dimensions;
  dimensions[0] = context.inputs[0].dimensions[0];
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status checkLookups(const OperationContext& context) {
  const int32_t* lookups = context.inputs[0].as<int32_t>();
  const uint32_t count = context.inputs[0].dimensions[0];
  const uint32_t rows = context.inputs[1].dimensions[0];
  for (uint32_t i = 0; i < count; ++i) {
    if (lookups[i] < 0 || static_cast<uint32_t>(lookups[i]) >= rows)
      return fail(ErrorCode::kBadData, "Look-up {} of {} is {}, there are {} rows.", i,
                  context.describe(), lookups[i], rows);
  }
  return {};
}

Status execute(OperationContext& context) {
  HEARTH_TRY(checkLookups(context));
  const int32_t* lookups = context.inputs[0].as<int32_t>();
  const uint32_t count = context.inputs[0].dimensions[0];
  const Tensor& values = context.inputs[1];
  const Tensor& output = context.outputs[0];
  if (values.type() != output.type()) {
    const WeightRows table(context, 1, kBlockScales);
    const size_t size = table.rowSize();
    float* target = output.as<float>();
    threads::forRanges(context.threadPool, count, threads::grainOf(size * sizeof(float)),
                       [&](uint64_t begin, uint64_t end) {
                         for (uint64_t i = begin; i < end; ++i)
                           table.read(static_cast<uint64_t>(lookups[i]), target + i * size);
                       });
    return {};
  }
  uint64_t size = graph::elementSize(values.type());
  for (size_t i = 1; i < values.rank(); ++i) size *= values.dimensions[i];
  const uint8_t* source = values.as<uint8_t>();
  uint8_t* target = output.as<uint8_t>();
  threads::forRanges(
      context.threadPool, count, threads::grainOf(size), [&](uint64_t begin, uint64_t end) {
        base::onWidestVectors([=]() HEARTH_INLINE {
          for (uint64_t i = begin; i < end; ++i)
            copyShort(target + i * size, source + static_cast<uint64_t>(lookups[i]) * size, size);
        });
      });
  return {};
}

}  // namespace

const OperationDefinition kEmbeddingLookupOperation = {OperationType::kEmbeddingLookup, validate,
                                                       prepare, execute};

}  // namespace hearth::ops
