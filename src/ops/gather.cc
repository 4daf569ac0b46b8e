// SPDX-License-Identifier: Apache-2.0
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

Result<size_t> parseAxis(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(1));
  return resolveAxis(context, axis, context.inputs[0].rank());
}

Status validate(const graph::Model&, const graph::Subgraph& subgraph,
                const graph::Operation& operation) {
  const Signature signature(subgraph, operation);
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputType(0, kMovableTensors));
  HEARTH_TRY(signature.inputRank(0, 1, kMaximumRank));
  HEARTH_TRY(signature.inputType(1, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(2, kIndexTensors));
  HEARTH_TRY(signature.outputTypeLike(0, 0));
  return signature.outputQuantizationLike(0, 0);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  Dimensions dimensions = context.inputs[0].dimensions;
  const Dimensions& indices = context.inputs[2].dimensions;
  const auto place = dimensions.erase(dimensions.begin() + static_cast<ptrdiff_t>(axis));
  dimensions.insert(place, indices.begin(), indices.end());
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
Status gather(const OperationContext& context, size_t axis, const Index* indices) {
  const Tensor& input = context.inputs[0];
  const uint64_t count = context.inputs[2].elementCount();
  const int64_t limit = input.dimensions[axis];
  bool isInside = true;
  for (uint64_t i = 0; i < count; ++i)
    isInside = isInside & (indices[i] >= 0) & (indices[i] < limit);
  for (uint64_t i = 0; !isInside && i < count; ++i)
    if (indices[i] < 0 || indices[i] >= limit)
      return fail(ErrorCode::kBadData, "Index {} of {} is {}, dimension {} has {} elements.", i,
                  context.describe(), indices[i], axis, limit);
  if (count == 0) return {};
  uint64_t outer = 1;
  uint64_t row = graph::elementSize(input.type());
  for (size_t i = 0; i < axis; ++i) outer *= input.dimensions[i];
  for (size_t i = axis + 1; i < input.rank(); ++i) row *= input.dimensions[i];
  const uint8_t* source = input.as<uint8_t>();
  uint8_t* target = context.outputs[0].as<uint8_t>();
  const uint64_t slab = static_cast<uint64_t>(limit) * row;
  threads::forRanges(context.threadPool, outer * count, threads::grainOf(row),
                     [&](uint64_t begin, uint64_t end) {
                       while (begin < end) {
                         const uint64_t first = begin % count;
                         const uint64_t taken = std::min(end - begin, count - first);
                         copyRows(source + begin / count * slab, indices + first, taken, row,
                                  target + begin * row);
                         begin += taken;
                       }
                     });
  return {};
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const size_t axis, parseAxis(context));
  const Tensor& indices = context.inputs[2];
  return indices.type() == OperandType::kTensorInt64 ? gather(context, axis, indices.as<int64_t>())
                                                     : gather(context, axis, indices.as<int32_t>());
}

}  // namespace

const OperationDefinition kGatherOperation = {OperationType::kGather, validate, prepare, execute};

}  // namespace hearth::ops
