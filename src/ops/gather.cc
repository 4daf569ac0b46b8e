// SPDX-License-Identifier: Apache-2.0
// GATHER. Beyond NNAPI's arguments it takes an INT32, TFLite's batch_dims: the number of leading
// dimensions that data and indices share. Each element of these dimensions is gathered separately.
#include <algorithm>
#include <cstring>

#include "base/vector_dispatch.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/short_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

struct GatherParameters {
  size_t axis = 0;
  size_t batchRank = 0;  // leading dimensions that data and indices share; at most `axis`
};

Result<GatherParameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  const Dimensions& data = context.inputs[0].dimensions;
  const Dimensions& indices = context.inputs[2].dimensions;
  GatherParameters parameters;
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(1));
  HEARTH_ASSIGN(parameters.axis, resolveAxis(context, axis, data.size()));
  HEARTH_ASSIGN(const int32_t batchRank, context.scalar<int32_t>(3, 0));
  const int64_t indexRank = static_cast<int64_t>(indices.size());
  const int64_t resolved = batchRank < 0 ? batchRank + indexRank : batchRank;
  if (resolved < 0 || resolved > indexRank || static_cast<uint64_t>(resolved) > parameters.axis ||
      !std::equal(indices.begin(), indices.begin() + resolved, data.begin()))
    return fail(ErrorCode::kBadData,
                "{} shares {} dimensions between data {} and indices {} and gathers along {}.",
                context.describe(), batchRank, graph::describeDimensions(data),
                graph::describeDimensions(indices), parameters.axis);
  parameters.batchRank = static_cast<size_t>(resolved);
  return parameters;
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 4, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovedTensors, 1, kMaximumRank));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(2, kIndexTensors));
  HEARTH_TRY(signature.optionalInputType(3, OperandType::kInt32));
  return signature.outputLike(0, 0);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const GatherParameters parameters, parse(context));
  Dimensions dimensions = context.inputs[0].dimensions;
  const Dimensions& indices = context.inputs[2].dimensions;
  const auto place = dimensions.erase(dimensions.begin() + static_cast<ptrdiff_t>(parameters.axis));
  dimensions.insert(place, indices.begin() + static_cast<ptrdiff_t>(parameters.batchRank),
                    indices.end());
  return context.setOutputDimensions(0, std::move(dimensions));
}

template <typename T, typename Index>
void copyElements(const uint8_t* source, const Index* indices, uint64_t count, uint8_t* target) {
  for (uint64_t i = 0; i < count; ++i)
    std::memcpy(target + i * sizeof(T), source + static_cast<uint64_t>(indices[i]) * sizeof(T),
                sizeof(T));
}

template <typename Index>
void copyRows(const uint8_t* source, const Index* indices, uint64_t count, uint64_t row,
              uint8_t* target) {
  switch (row) {
    case 1:
      return copyElements<uint8_t>(source, indices, count, target);
    case 2:
      return copyElements<uint16_t>(source, indices, count, target);
    case 4:
      return copyElements<uint32_t>(source, indices, count, target);
    case 8:
      return copyElements<uint64_t>(source, indices, count, target);
    default:
      base::onWidestVectors([=]() HEARTH_INLINE {
        for (uint64_t i = 0; i < count; ++i)
          copyShort(target + i * row, source + static_cast<uint64_t>(indices[i]) * row, row);
      });
  }
}

template <typename Index>
Status gather(const OperationContext& context, const GatherParameters& parameters,
              const Index* indices) {
  const Tensor& input = context.inputs[0];
  const uint64_t all = context.inputs[2].elementCount();
  const int64_t limit = input.dimensions[parameters.axis];
  bool isInside = true;
  for (uint64_t i = 0; i < all; ++i) isInside = isInside & (indices[i] >= 0) & (indices[i] < limit);
  for (uint64_t i = 0; !isInside && i < all; ++i)
    if (indices[i] < 0 || indices[i] >= limit)
      return fail(ErrorCode::kBadData, "Index {} of {} is {}, dimension {} has {} elements.", i,
                  context.describe(), indices[i], parameters.axis, limit);
  // Without this, the loops would run over rows without elements, of which there may be any number.
  if (context.outputs[0].elementCount() == 0) return {};
  uint64_t batches = 1;
  uint64_t outer = 1;
  uint64_t row = graph::elementSize(input.type());
  for (size_t i = 0; i < parameters.axis; ++i)
    (i < parameters.batchRank ? batches : outer) *= input.dimensions[i];
  for (size_t i = parameters.axis + 1; i < input.rank(); ++i) row *= input.dimensions[i];
  const uint64_t count = all / batches;
  const uint8_t* source = input.as<uint8_t>();
  uint8_t* target = context.outputs[0].as<uint8_t>();
  const uint64_t slab = static_cast<uint64_t>(limit) * row;
  threads::forRanges(context.threadPool, batches * outer * count, threads::grainOf(row),
                     [&](uint64_t begin, uint64_t end) {
                       while (begin < end) {
                         const uint64_t first = begin % count;
                         const uint64_t taken = std::min(end - begin, count - first);
                         const uint64_t block = begin / count;
                         copyRows(source + block * slab, indices + block / outer * count + first,
                                  taken, row, target + begin * row);
                         begin += taken;
                       }
                     });
  return {};
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const GatherParameters parameters, parse(context));
  const Tensor& indices = context.inputs[2];
  return indices.type() == OperandType::kTensorInt64
             ? gather(context, parameters, indices.as<int64_t>())
             : gather(context, parameters, indices.as<int32_t>());
}

}  // namespace

const OperationDefinition kGatherOperation = {OperationType::kGather, validate, prepare, execute};

}  // namespace hearth::ops
