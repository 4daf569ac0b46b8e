// SPDX-License-Identifier: Apache-2.0
// SCATTER_ND of the extension: adds updates to zeros at the places that the indices name; several
// updates of one place are added up. Inputs: indices [..., depth], updates [..., rest of the
// shape], output dimensions.
#include <cstring>

#include "base/vector_dispatch.h"
#include "ops/element_visitor.h"
#include "ops/nd_index.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kAddable = OperandType::kTensorFloat32 | OperandType::kTensorInt32 |
                             OperandType::kTensorInt64 | OperandType::kTensorQuant8Asymm |
                             OperandType::kTensorQuant8AsymmSigned | OperandType::kTensorBool8;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputTensor(0, kIndexTensors, 1, kMaximumRank));
  HEARTH_TRY(signature.inputTensor(1, kAddable, 0, kMaximumRank));
  HEARTH_TRY(signature.inputTensor(2, kIndexTensors, 1, 1));
  return signature.outputLike(0, 1);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  HEARTH_ASSIGN(Dimensions output, dimensionsArgument(context, 2));
  const Dimensions& indices = context.inputs[0].dimensions;
  const size_t depth = indices.back();
  Dimensions expected(indices.begin(), indices.end() - 1);
  if (depth <= output.size())
    expected.insert(expected.end(), output.begin() + static_cast<ptrdiff_t>(depth), output.end());
  if (depth > output.size() || context.inputs[1].dimensions != expected)
    return fail(
        ErrorCode::kBadData, "The indices {} and updates {} of {} do not fit its output {}.",
        graph::describeDimensions(indices), graph::describeDimensions(context.inputs[1].dimensions),
        context.describe(), graph::describeDimensions(output));
  return context.setOutputDimensions(0, std::move(output));
}

template <typename T>
HEARTH_INLINE inline T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

Status execute(OperationContext& context) {
  const Tensor& output = context.outputs[0];
  // There may be any number of updates without elements.
  if (context.inputs[1].elementCount() == 0) {
    std::memset(output.data, 0, output.elementCount() * graph::elementSize(output.type()));
    return {};
  }
  HEARTH_ASSIGN(const std::vector<uint64_t> slices,
                readSliceNumbers(context, 0, output.dimensions));
  size_t size = 1;
  for (size_t i = context.inputs[0].dimensions.back(); i < output.rank(); ++i)
    size *= output.dimensions[i];
  return visitElementType(output.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    T* target = output.as<T>();
    const T* updates = context.inputs[1].as<T>();
    std::memset(target, 0, output.elementCount() * sizeof(T));
    const uint64_t* places = slices.data();
    const size_t count = slices.size();
    base::onWidestVectors([=]() HEARTH_INLINE {
      for (size_t s = 0; s < count; ++s) {
        T* row = target + places[s] * size;
        const T* added = updates + s * size;
#pragma GCC ivdep
        for (size_t i = 0; i < size; ++i) row[i] = sum(row[i], added[i]);
      }
    });
    return {};
  });
}

}  // namespace

const OperationDefinition kScatterNdOperation = {OperationType::kScatterNd, validate, prepare,
                                                 execute};

}  // namespace hearth::ops
