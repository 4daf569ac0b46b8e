// SPDX-License-Identifier: Apache-2.0
#include "ops/operation.h"

#include <cstring>
#include <span>

#include "base/format.h"

namespace hearth::ops {
namespace {

constexpr const char* kNeedsRuntimeValue =
    "The output shape depends on a value known only at run time";

template <typename T>
constexpr OperandType kScalarType = {};
template <>
constexpr OperandType kScalarType<float> = OperandType::kFloat32;
template <>
constexpr OperandType kScalarType<int32_t> = OperandType::kInt32;
template <>
constexpr OperandType kScalarType<uint32_t> = OperandType::kUint32;
template <>
constexpr OperandType kScalarType<bool> = OperandType::kBool;

// A dimension may be 0 at run time; only the product must not overflow.
Status checkSize(const graph::Operand& operand, const Dimensions& dimensions) {
  graph::Operand sized;
  sized.type = operand.type;
  sized.dimensions = dimensions;
  for (uint32_t& dimension : sized.dimensions) dimension = dimension == 0 ? 1 : dimension;
  if (sized.dimensions.empty() || graph::byteSize(sized)) return {};
  sized.name = operand.name;
  return std::unexpected(graph::byteSize(sized).error());
}

}  // namespace

template <typename T>
Result<T> OperationContext::scalar(size_t index) const {
  if (!hasInput(index))
    return fail(ErrorCode::kBadData, "{} lacks its input {}.", describe(), index);
  const Tensor& tensor = inputs[index];
  if (tensor.type() != kScalarType<T>)
    return fail(ErrorCode::kBadData, "Input {} of {} is {}, it must be {}.", index, describe(),
                graph::describe(*tensor.operand), graph::nameOf(kScalarType<T>));
  if (tensor.data == nullptr)
    return fail(ErrorCode::kUnsupported, "Input {} of {} must be a constant.", index, describe());
  if constexpr (std::is_same_v<T, bool>) {
    return *tensor.as<uint8_t>() != 0;
  } else {
    T value;
    std::memcpy(&value, tensor.data, sizeof(value));
    return value;
  }
}

template <typename T>
Result<T> OperationContext::scalar(size_t index, T fallback) const {
  if (!hasInput(index)) return fallback;
  return scalar<T>(index);
}

template Result<float> OperationContext::scalar(size_t) const;
template Result<int32_t> OperationContext::scalar(size_t) const;
template Result<uint32_t> OperationContext::scalar(size_t) const;
template Result<bool> OperationContext::scalar(size_t) const;
template Result<float> OperationContext::scalar(size_t, float) const;
template Result<int32_t> OperationContext::scalar(size_t, int32_t) const;
template Result<uint32_t> OperationContext::scalar(size_t, uint32_t) const;
template Result<bool> OperationContext::scalar(size_t, bool) const;

Result<std::vector<int64_t>> OperationContext::intVector(size_t index) const {
  if (!hasInput(index))
    return fail(ErrorCode::kBadData, "{} lacks its input {}.", describe(), index);
  const Tensor& tensor = inputs[index];
  if (tensor.type() != OperandType::kTensorInt32 && tensor.type() != OperandType::kTensorInt64)
    return fail(ErrorCode::kBadData, "Input {} of {} is {}, it must be TENSOR_INT32.", index,
                describe(), graph::describe(*tensor.operand));
  if (tensor.data == nullptr) return needsRuntimeValue(*this, index);
  std::vector<int64_t> values(tensor.elementCount());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = tensor.type() == OperandType::kTensorInt32 ? tensor.as<int32_t>()[i]
                                                           : tensor.as<int64_t>()[i];
  return values;
}

Status OperationContext::setOutputDimensions(size_t index, Dimensions dimensions) {
  if (!hasOutput(index)) return {};
  Tensor& output = outputs[index];
  const Dimensions& declared = output.operand->dimensions;
  bool fits = declared.empty() ? !output.operand->isRankZeroTensor || dimensions.empty()
                               : declared.size() == dimensions.size();
  for (size_t i = 0; fits && i < declared.size(); ++i)
    fits = declared[i] == 0 || declared[i] == dimensions[i];
  if (!fits)
    return fail(ErrorCode::kBadData, "Output {} of {} is declared as {}, its inputs give {}.",
                index, describe(), graph::describeDimensions(declared),
                graph::describeDimensions(dimensions));
  HEARTH_TRY(checkSize(*output.operand, dimensions));
  output.dimensions = std::move(dimensions);
  output.hasKnownShape = true;
  return {};
}

std::string OperationContext::describe() const {
  std::string text = graph::nameOf(operation->type);
  // As graph::operationName().
  const bool hasName = !operation->name.empty() || outputs.empty();
  const std::string& name = hasName ? operation->name : outputs.front().operand->name;
  if (!name.empty()) text += base::formatText(" \"{}\"", name);
  return text;
}

std::unexpected<Error> needsRuntimeValue(const OperationContext& context, size_t input) {
  return fail(ErrorCode::kUnsupported, "{} (input {} of {}).", kNeedsRuntimeValue, input,
              context.describe());
}

bool isNeedsRuntimeValue(const Error& error) {
  return error.code() == ErrorCode::kUnsupported && error.message().starts_with(kNeedsRuntimeValue);
}

void makeContext(const graph::Model& model, const graph::Subgraph& subgraph,
                 const graph::Operation& operation, OperationContext* context) {
  context->model = &model;
  context->operation = &operation;
  context->threadPool = nullptr;
  context->custom = nullptr;
  const auto fill = [&](std::span<const uint32_t> indices, std::vector<Tensor>* list) {
    list->resize(indices.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      const graph::Operand& operand = subgraph.operands[indices[i]];
      Tensor& tensor = (*list)[i];
      tensor.operand = &operand;
      tensor.dimensions = operand.dimensions;
      tensor.isPresent = operand.hasValue();
      tensor.hasKnownShape = graph::isFullySpecified(operand);
      // Constants are never written: kernels take inputs as const.
      tensor.data = const_cast<uint8_t*>(model.constantData(operand));
    }
  };
  fill(operation.inputs, &context->inputs);
  fill(operation.outputs, &context->outputs);
}

OperationContext makeContext(const graph::Model& model, const graph::Subgraph& subgraph,
                             const graph::Operation& operation) {
  OperationContext context;
  makeContext(model, subgraph, operation, &context);
  return context;
}

}  // namespace hearth::ops
