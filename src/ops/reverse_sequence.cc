// SPDX-License-Identifier: Apache-2.0
// REVERSE_SEQUENCE of the extension: reverses the beginning of each batch element's sequence.
// Inputs: data, lengths (one for each batch element), INT32 dimension of the sequence, INT32
// dimension of the batch.
#include <algorithm>

#include "base/vector_dispatch.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/short_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(4, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovableTensors, 2, kMaximumRank));
  HEARTH_TRY(signature.inputTensor(1, kIndexTensors, 1, 1));
  for (const size_t i : {2, 3}) HEARTH_TRY(signature.inputType(i, OperandType::kInt32));
  return signature.outputLike(0, 0);
}

struct Axes {
  size_t sequence;
  size_t batch;
};

Result<Axes> parseAxes(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireRank(context, 0, 2, kMaximumRank));
  HEARTH_ASSIGN(const int32_t sequence, context.scalar<int32_t>(2));
  HEARTH_ASSIGN(const int32_t batch, context.scalar<int32_t>(3));
  const Dimensions& data = context.inputs[0].dimensions;
  Axes axes{};
  HEARTH_ASSIGN(axes.sequence, resolveAxis(context, sequence, data.size()));
  HEARTH_ASSIGN(axes.batch, resolveAxis(context, batch, data.size()));
  if (axes.sequence == axes.batch || context.inputs[1].elementCount() != data[axes.batch])
    return fail(ErrorCode::kBadData, "{} has {} lengths for dimensions {} and {} of {}.",
                context.describe(), context.inputs[1].elementCount(), axes.sequence, axes.batch,
                graph::describeDimensions(data));
  return axes;
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Axes axes, parseAxes(context));
  HEARTH_ASSIGN(const std::vector<int64_t> lengths, context.intVector(1));
  const Tensor& data = context.inputs[0];
  if (data.elementCount() == 0) return {};  // other dimensions may be as large as they like
  const int64_t longest = data.dimensions[axes.sequence];
  for (size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] < 0 || lengths[i] > longest)
      return fail(ErrorCode::kBadData, "Length {} of {} is {}, the sequence has {} elements.", i,
                  context.describe(), lengths[i], longest);
  // Elements after the later of the two dimensions stay together.
  const size_t first = std::min(axes.sequence, axes.batch);
  const size_t second = std::max(axes.sequence, axes.batch);
  uint64_t outer = 1;
  for (size_t i = 0; i < first; ++i) outer *= data.dimensions[i];
  uint64_t between = 1;
  for (size_t i = first + 1; i < second; ++i) between *= data.dimensions[i];
  uint64_t bytes = graph::elementSize(data.type());
  for (size_t i = second + 1; i < data.rank(); ++i) bytes *= data.dimensions[i];
  const uint64_t firstSize = data.dimensions[first];
  const uint64_t secondSize = data.dimensions[second];
  const uint8_t* source = data.as<uint8_t>();
  uint8_t* target = context.outputs[0].as<uint8_t>();
  const int64_t* lengthOf = lengths.data();
  const bool isBatchFirst = axes.batch == first;
  threads::forRanges(
      context.threadPool, outer * firstSize, threads::grainOf(between * secondSize * bytes),
      [&](uint64_t begin, uint64_t end) {
        base::onWidestVectors([=]() HEARTH_INLINE {
          const auto reversed = [=](uint64_t position, uint64_t batch) HEARTH_INLINE {
            const auto length = static_cast<uint64_t>(lengthOf[batch]);
            return position < length ? length - 1 - position : position;
          };
          for (uint64_t line = begin; line < end; ++line) {
            const uint64_t i = line % firstSize;
            const uint64_t lineOfOuter = line - i;
            for (uint64_t k = 0; k < between; ++k) {
              for (uint64_t j = 0; j < secondSize; ++j) {
                const uint64_t fromI = isBatchFirst ? i : reversed(i, j);
                const uint64_t fromJ = isBatchFirst ? reversed(j, i) : j;
                const uint64_t from = ((lineOfOuter + fromI) * between + k) * secondSize + fromJ;
                const uint64_t to = (line * between + k) * secondSize + j;
                copyShort(target + to * bytes, source + from * bytes, bytes);
              }
            }
          }
        });
      });
  return {};
}

}  // namespace

const OperationDefinition kReverseSequenceOperation = {OperationType::kReverseSequence, validate,
                                                       prepareLikeInput<parseAxes>, execute};

}  // namespace hearth::ops
