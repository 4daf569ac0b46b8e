// SPDX-License-Identifier: Apache-2.0
// WHERE of the extension: the indices of all elements that are not 0. Input: data. The output is
// TENSOR_INT64 of [count, rank], in the data's order.
#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovableTensors, 0, kMaximumRank));
  return signature.outputType(0, OperandType::kTensorInt64);
}

// Calls visit(flat index) for each element that is not 0.
template <typename Visit>
Status forEachSet(const Tensor& tensor, const Visit& visit) {
  return visitElementType(tensor.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    const T* values = tensor.as<T>();
    const uint64_t count = tensor.elementCount();
    for (uint64_t i = 0; i < count; ++i)
      if (values[i] != T{0}) visit(i);
    return {};
  });
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  const Tensor& input = context.inputs[0];
  if (input.data == nullptr) return needsRuntimeValue(context, 0);
  int64_t count = 0;
  HEARTH_TRY(forEachSet(input, [&](uint64_t) { ++count; }));
  HEARTH_ASSIGN(const uint32_t rows, toDimension(context, count));
  return context.setOutputDimensions(0, {rows, static_cast<uint32_t>(input.rank())});
}

Status execute(OperationContext& context) {
  const Tensor& input = context.inputs[0];
  const size_t rank = input.rank();
  int64_t* target = context.outputs[0].as<int64_t>();
  return forEachSet(input, [&](uint64_t flat) {
    for (size_t i = rank; i-- > 0;) {
      target[i] = static_cast<int64_t>(flat % input.dimensions[i]);
      flat /= input.dimensions[i];
    }
    target += rank;
  });
}

}  // namespace

const OperationDefinition kWhereOperation = {OperationType::kWhere, validate, prepare, execute};

}  // namespace hearth::ops
