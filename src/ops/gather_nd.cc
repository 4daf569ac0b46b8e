// SPDX-License-Identifier: Apache-2.0
// GATHER_ND of the extension. Inputs: data, indices [..., depth]. Each run of `depth` indices
// selects a slice of the data.
#include "base/vector_dispatch.h"
#include "ops/nd_index.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/short_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovedTensors, 1, kMaximumRank));
  HEARTH_TRY(signature.inputTensor(1, kIndexTensors, 1, kMaximumRank));
  return signature.outputLike(0, 0);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  HEARTH_TRY(requireRank(context, 1, 1, kMaximumRank));
  const Dimensions& data = context.inputs[0].dimensions;
  const Dimensions& indices = context.inputs[1].dimensions;
  const size_t depth = indices.back();
  if (depth > data.size() || indices.size() - 1 + data.size() - depth > kMaximumRank)
    return fail(ErrorCode::kBadData, "The indices {} of {} do not fit its data {}.",
                graph::describeDimensions(indices), context.describe(),
                graph::describeDimensions(data));
  Dimensions dimensions(indices.begin(), indices.end() - 1);
  dimensions.insert(dimensions.end(), data.begin() + static_cast<ptrdiff_t>(depth), data.end());
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  // There may be any number of slices without elements.
  if (context.outputs[0].elementCount() == 0) return {};
  const Tensor& data = context.inputs[0];
  const size_t depth = context.inputs[1].dimensions.back();
  uint64_t size = graph::elementSize(data.type());
  for (size_t i = depth; i < data.rank(); ++i) size *= data.dimensions[i];
  HEARTH_ASSIGN(const std::vector<uint64_t> slices, readSliceNumbers(context, 1, data.dimensions));
  const uint8_t* source = data.as<uint8_t>();
  uint8_t* target = context.outputs[0].as<uint8_t>();
  threads::forRanges(context.threadPool, slices.size(), threads::grainOf(size),
                     [&](uint64_t begin, uint64_t end) {
                       const uint64_t* slice = slices.data();
                       base::onWidestVectors([=]() HEARTH_INLINE {
                         for (uint64_t i = begin; i < end; ++i)
                           copyShort(target + i * size, source + slice[i] * size, size);
                       });
                     });
  return {};
}

}  // namespace

const OperationDefinition kGatherNdOperation = {OperationType::kGatherNd, validate, prepare,
                                                execute};

}  // namespace hearth::ops
