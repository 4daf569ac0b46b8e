// SPDX-License-Identifier: Apache-2.0
// DYNAMIC_UPDATE_SLICE of the extension. Inputs: data, update, begin (INT32 or INT64, one for each
// dimension), and optionally a BOOL: the update is a row of the data. The output is the data, with
// the update written over a slice of them.
#include "ops/dynamic_update_slice.h"

#include <algorithm>
#include <utility>

#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 4, 1));
  HEARTH_TRY(signature.inputType(0, kMovedTensors));
  HEARTH_TRY(signature.inputTypeLike(1, 0));
  HEARTH_TRY(signature.inputType(2, kIndexTensors));
  HEARTH_TRY(signature.inputRank(0, 0, kMaximumRank));
  HEARTH_TRY(signature.inputRank(1, 0, kMaximumRank));
  HEARTH_TRY(signature.inputRank(2, 1, 1));
  HEARTH_TRY(signature.optionalInputType(3, OperandType::kBool));
  HEARTH_TRY(signature.outputTypeLike(0, 0));
  HEARTH_TRY(signature.sameQuantization(0, 1));
  return signature.outputQuantizationLike(0, 0);
}

// Whether the update is a row.
Result<bool> checkShapes(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  const Dimensions& data = context.inputs[0].dimensions;
  const Dimensions& update = context.inputs[1].dimensions;
  HEARTH_ASSIGN(const bool isRow, context.scalar<bool>(3, false));
  bool fits = data.size() == update.size() && context.inputs[2].elementCount() == data.size();
  if (isRow) fits = fits && !data.empty() && update[0] == 1;
  for (size_t i = 0; fits && i < data.size(); ++i)
    fits = isRow && i > 0 ? update[i] == data[i] : update[i] <= data[i];
  if (fits) return isRow;
  return fail(ErrorCode::kBadData, "{} puts {} into {} at {} indices.", context.describe(),
              graph::describeDimensions(update), graph::describeDimensions(data),
              context.inputs[2].elementCount());
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(checkShapes(context));
  return context.setOutputDimensions(0, context.inputs[0].dimensions);
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const std::vector<int64_t> begin, parseUpdateBegin(context));
  const Tensor& data = context.inputs[0];
  const Tensor& update = context.inputs[1];
  const Tensor& output = context.outputs[0];
  const size_t element = graph::elementSize(data.type());
  // The output may lie in the data's own memory: drivers run the operation in place.
  if (output.data != data.data)
    copyStrided(1, {{static_cast<int64_t>(data.elementCount() * element), 1, 1}}, data.data,
                output.data, context.threadPool);
  copyBlock(element, update.dimensions, update.data, output.dimensions, begin, output.data,
            context.threadPool);
  return {};
}

}  // namespace

Result<std::vector<int64_t>> parseUpdateBegin(const OperationContext& context) {
  HEARTH_ASSIGN(const bool isRow, checkShapes(context));
  HEARTH_ASSIGN(std::vector<int64_t> begin, context.intVector(2));
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t room = int64_t{context.inputs[0].dimensions[i]} - context.inputs[1].dimensions[i];
    const int64_t given = std::exchange(begin[i], std::clamp<int64_t>(begin[i], 0, room));
    if (isRow && given != begin[i])
      return fail(ErrorCode::kBadData, "{} puts a row at {} in dimension {} of {}.",
                  context.describe(), given, i,
                  graph::describeDimensions(context.inputs[0].dimensions));
  }
  return begin;
}

const OperationDefinition kDynamicUpdateSliceOperation = {OperationType::kDynamicUpdateSlice,
                                                          validate, prepare, execute};

}  // namespace hearth::ops
