// SPDX-License-Identifier: Apache-2.0
// BITCAST of the extension: the same bytes as elements of another type. Input: data. Where the
// types differ in size, the last dimension of the larger type's tensor is split: the tensor of the
// smaller type has one dimension more, which counts the parts of one larger element.
#include <cstring>

#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(signature.inputType(0, kMovableTensors));
  return signature.outputType(0, kMovableTensors);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  const size_t from = graph::elementSize(context.inputs[0].type());
  const size_t to = graph::elementSize(context.outputs[0].type());
  Dimensions dimensions = context.inputs[0].dimensions;
  if (from > to) {
    dimensions.push_back(static_cast<uint32_t>(from / to));
  } else if (from < to) {
    if (dimensions.empty() || dimensions.back() != to / from)
      return fail(ErrorCode::kBadData,
                  "{} makes elements of {} bytes of {} bytes each; the last dimension of {} must "
                  "be {}.",
                  context.describe(), to, from, graph::describeDimensions(dimensions), to / from);
    dimensions.pop_back();
  }
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  const Tensor& output = context.outputs[0];
  const uint64_t bytes = output.elementCount() * graph::elementSize(output.type());
  if (bytes > 0) std::memmove(output.data, context.inputs[0].data, bytes);
  return {};
}

}  // namespace

const OperationDefinition kBitcastOperation = {OperationType::kBitcast, validate, prepare, execute};

}  // namespace hearth::ops
