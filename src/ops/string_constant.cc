// SPDX-License-Identifier: Apache-2.0
// STRING_CONSTANT of the extension makes a tensor of the strings that a model file holds. Inputs: a
// constant buffer of strings (memory/packed_strings.h), TENSOR_QUANT8_ASYMM of rank 1; and the
// shape of the output, a constant TENSOR_INT32, omitted for rank 0. The output is TENSOR_STRING. It
// is an operation because the handles of strings cannot be constants: they are others in each
// process.
#include <algorithm>

#include "memory/packed_strings.h"
#include "memory/string_heap.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 2, 1));
  HEARTH_TRY(signature.inputTensor(0, OperandType::kTensorQuant8Asymm, 1, 1));
  HEARTH_TRY(signature.optionalInputType(1, OperandType::kTensorInt32));
  return signature.outputType(0, OperandType::kTensorString);
}

Result<memory::PackedStrings> stringsOf(const OperationContext& context) {
  const Tensor& buffer = context.inputs[0];
  return memory::PackedStrings::of({buffer.as<const uint8_t>(), buffer.elementCount()});
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  if (context.inputs[0].data == nullptr) return needsRuntimeValue(context, 0);
  HEARTH_ASSIGN(const memory::PackedStrings strings, stringsOf(context));
  Dimensions dimensions;
  uint64_t count = 1;
  if (context.hasInput(1)) {
    HEARTH_ASSIGN(const std::vector<int64_t> shape, context.intVector(1));
    for (const int64_t value : shape) {
      HEARTH_ASSIGN(const uint32_t dimension, toDimension(context, value));
      dimensions.push_back(dimension);
      if (__builtin_mul_overflow(count, dimension, &count)) count = UINT64_MAX;
    }
  }
  if (count != strings.count())
    return fail(ErrorCode::kBadData, "{} has {} strings for the shape {}.", context.describe(),
                strings.count(), graph::describeDimensions(dimensions));
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const memory::PackedStrings strings, stringsOf(context));
  // Another thread may have written to the memory of the input since the output was allocated.
  if (strings.count() != context.outputs[0].elementCount())
    return fail(ErrorCode::kOpFailed, "The strings of {} changed during the run.",
                context.describe());
  auto* const target = context.outputs[0].as<memory::StringHandle>();
  for (size_t i = 0; i < strings.count(); ++i) {
    HEARTH_ASSIGN(target[i], memory::putString(strings[i]));
  }
  return {};
}

}  // namespace

const OperationDefinition kStringConstantOperation = {OperationType::kStringConstant, validate,
                                                      prepare, execute};

}  // namespace hearth::ops
