// SPDX-License-Identifier: Apache-2.0
// SPARSE_TO_DENSE of the extension: a tensor that has a default value except at the places that the
// indices name; of several values for one place the last one is stored. Inputs: indices (a scalar
// or [n] for an output of rank 1, else [n, rank]), the output's shape, values (one for all places,
// or [n]), the default value.
#include <cstring>

#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kIndices, kShape, kValues, kDefault };

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(4, 1));
  HEARTH_TRY(signature.inputTensor(kIndices, kIndexTensors, 0, 2));
  HEARTH_TRY(signature.inputTensor(kShape, kIndexTensors, 1, 1));
  HEARTH_TRY(signature.inputTensor(kValues, kMovableTensors, 0, 1));
  HEARTH_TRY(signature.inputTypeLike(kDefault, kValues));
  // Both are copied as stored.
  if (!isSameQuantization(signature.input(kDefault), signature.input(kValues)))
    return fail(ErrorCode::kBadData, "The values and the default of {} differ in scale.",
                signature.describe());
  return signature.outputLike(0, kValues);
}

// Number of places that the indices name, and of indices for each place.
struct Places {
  uint64_t count = 1;
  uint64_t depth = 1;
};

Places placesOf(const OperationContext& context) {
  const Dimensions& indices = context.inputs[kIndices].dimensions;
  Places places;
  if (!indices.empty()) places.count = indices[0];
  if (indices.size() > 1) places.depth = indices[1];
  return places;
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 4, 1));
  HEARTH_TRY(requireRank(context, kIndices, 0, 2));
  HEARTH_TRY(requireRank(context, kValues, 0, 1));
  HEARTH_TRY(requireOneElement(context, kDefault));
  HEARTH_ASSIGN(Dimensions output, dimensionsArgument(context, kShape));
  const Places places = placesOf(context);
  const uint64_t values = context.inputs[kValues].elementCount();
  const bool isOneForAll = context.inputs[kValues].rank() == 0;
  if (places.depth == 0 || places.depth != output.size() ||
      (!isOneForAll && values != places.count))
    return fail(ErrorCode::kBadData, "The indices {} and values {} of {} do not fit its output {}.",
                graph::describeDimensions(context.inputs[kIndices].dimensions),
                graph::describeDimensions(context.inputs[kValues].dimensions), context.describe(),
                graph::describeDimensions(output));
  return context.setOutputDimensions(0, std::move(output));
}

Status execute(OperationContext& context) {
  const Tensor& output = context.outputs[0];
  const Tensor& values = context.inputs[kValues];
  const size_t size = graph::elementSize(output.type());
  fillElements(size, context.inputs[kDefault].data, output.data, output.elementCount());
  const Places places = placesOf(context);
  HEARTH_ASSIGN(const std::vector<int64_t> indices, context.intVector(kIndices));
  const size_t step = values.rank() == 0 ? 0 : size;
  for (uint64_t i = 0; i < places.count; ++i) {
    uint64_t place = 0;
    for (uint64_t d = 0; d < places.depth; ++d) {
      const int64_t index = indices[i * places.depth + d];
      if (index < 0 || index >= output.dimensions[d])
        return fail(ErrorCode::kBadData, "Index {} of dimension {} of {} is outside its output {}.",
                    index, d, context.describe(), graph::describeDimensions(output.dimensions));
      place = place * output.dimensions[d] + static_cast<uint64_t>(index);
    }
    std::memcpy(output.as<uint8_t>() + place * size, values.as<uint8_t>() + i * step, size);
  }
  return {};
}

}  // namespace

const OperationDefinition kSparseToDenseOperation = {OperationType::kSparseToDense, validate,
                                                     prepare, execute};

}  // namespace hearth::ops
