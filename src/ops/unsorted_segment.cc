// SPDX-License-Identifier: Apache-2.0
// UNSORTED_SEGMENT_PROD, _MAX, _SUM and _MIN of the extension combine rows with the same segment
// number. Inputs: data, segment numbers (their shape is that of the leading dimensions of the data;
// the other dimensions are a row; rows with a negative number are left out), the number of segments
// (one element). Segments without rows hold the neutral element: 1, the lowest number, 0, the
// highest number.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputTensor(0, OperandType::kTensorFloat32 | OperandType::kTensorInt32, 1,
                                   kMaximumRank));
  HEARTH_TRY(signature.inputTensor(1, kIndexTensors, 1, kMaximumRank));
  HEARTH_TRY(signature.inputType(2, kIndexTensors));
  return signature.outputTypeLike(0, 0);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  HEARTH_TRY(requireOneElement(context, 2));
  HEARTH_ASSIGN(const std::vector<int64_t> count, context.intVector(2));
  Dimensions dimensions = context.inputs[0].dimensions;
  const Dimensions& numbers = context.inputs[1].dimensions;
  if (numbers.empty() || numbers.size() > dimensions.size() ||
      !std::equal(numbers.begin(), numbers.end(), dimensions.begin()))
    return fail(ErrorCode::kBadData, "{} has segment numbers {} for data {}.", context.describe(),
                graph::describeDimensions(numbers), graph::describeDimensions(dimensions));
  dimensions.erase(dimensions.begin() + 1,
                   dimensions.begin() + static_cast<ptrdiff_t>(numbers.size()));
  HEARTH_ASSIGN(dimensions[0], toDimension(context, count[0]));
  return context.setOutputDimensions(0, std::move(dimensions));
}

template <typename T>
T neutralValue(OperationType type) {
  switch (type) {
    case OperationType::kUnsortedSegmentProd:
      return T{1};
    case OperationType::kUnsortedSegmentMax:
      return std::numeric_limits<T>::lowest();
    case OperationType::kUnsortedSegmentMin:
      return std::numeric_limits<T>::max();
    default:
      return T{0};
  }
}

// Sums and products of integers wrap.
template <typename T>
T combine(OperationType type, T a, T b) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  switch (type) {
    case OperationType::kUnsortedSegmentProd:
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case OperationType::kUnsortedSegmentMax:
      return std::max(a, b);
    case OperationType::kUnsortedSegmentMin:
      return std::min(a, b);
    default:
      return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  }
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const std::vector<int64_t> segments, context.intVector(1));
  const Tensor& input = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const OperationType type = context.operation->type;
  for (const int64_t segment : segments)
    if (segment >= int64_t{output.dimensions[0]})
      return fail(ErrorCode::kBadData, "The segment number {} of {} must be below {}.", segment,
                  context.describe(), output.dimensions[0]);
  size_t row = 1;
  for (size_t i = context.inputs[1].rank(); i < input.rank(); ++i) row *= input.dimensions[i];
  return visitElementType(input.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    T* target = output.as<T>();
    std::fill_n(target, output.elementCount(), neutralValue<T>(type));
    for (size_t i = 0; i < segments.size(); ++i) {
      if (segments[i] < 0) continue;
      const T* source = input.as<T>() + i * row;
      T* combined = target + static_cast<size_t>(segments[i]) * row;
      for (size_t j = 0; j < row; ++j) combined[j] = combine(type, combined[j], source[j]);
    }
    return {};
  });
}

}  // namespace

const OperationDefinition kUnsortedSegmentProdOperation = {OperationType::kUnsortedSegmentProd,
                                                           validate, prepare, execute};
const OperationDefinition kUnsortedSegmentMaxOperation = {OperationType::kUnsortedSegmentMax,
                                                          validate, prepare, execute};
const OperationDefinition kUnsortedSegmentSumOperation = {OperationType::kUnsortedSegmentSum,
                                                          validate, prepare, execute};
const OperationDefinition kUnsortedSegmentMinOperation = {OperationType::kUnsortedSegmentMin,
                                                          validate, prepare, execute};

}  // namespace hearth::ops
