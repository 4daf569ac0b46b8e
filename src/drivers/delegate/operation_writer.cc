// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/operation_writer.h"

#include <algorithm>
#include <utility>

#include "tflite_abi/tensors.h"

namespace hearth::drivers::delegate {
namespace {

using graph::OperandType;
using tflite_abi::Builtin;

TfLiteType typeOf(OperandType type) {
  switch (type) {
    case OperandType::kFloat32:
    case OperandType::kTensorFloat32:
      return kTfLiteFloat32;
    case OperandType::kFloat16:
    case OperandType::kTensorFloat16:
      return kTfLiteFloat16;
    case OperandType::kInt32:
    case OperandType::kTensorInt32:
      return kTfLiteInt32;
    case OperandType::kBool:
    case OperandType::kTensorBool8:
      return kTfLiteBool;
    case OperandType::kTensorQuant8Asymm:
      return kTfLiteUInt8;
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
    case OperandType::kTensorQuant8SymmPerChannel:
      return kTfLiteInt8;
    case OperandType::kTensorInt16:
    case OperandType::kTensorQuant16Symm:
      return kTfLiteInt16;
    case OperandType::kTensorInt64:
      return kTfLiteInt64;
    case OperandType::kTensorUint64:
      return kTfLiteUInt64;
    case OperandType::kTensorFloat64:
      return kTfLiteFloat64;
    case OperandType::kTensorUint16:
      return kTfLiteUInt16;
    case OperandType::kTensorUint32:
      return kTfLiteUInt32;
    default:
      return kTfLiteNoType;
  }
}

std::vector<int32_t> dimsOf(const graph::Dimensions& dimensions) {
  return {dimensions.begin(), dimensions.end()};
}

// Operations whose versions for 8 and 16 bits are not the second and third.
int32_t versionFor(Builtin code, TfLiteType type) {
  struct Versions {
    Builtin code;
    int32_t signed8, symmetric16;
  };
  constexpr Versions kExceptions[] = {
      {Builtin::kConv2d, 3, 4},         {Builtin::kDepthwiseConv2d, 3, 5},
      {Builtin::kFullyConnected, 4, 7}, {Builtin::kReshape, 1, 1},
      {Builtin::kStridedSlice, 2, 4},   {Builtin::kSplit, 2, 4},
      {Builtin::kSvdf, 3, 3},
  };
  Versions versions{code, 2, 3};
  for (const Versions& exception : kExceptions)
    if (exception.code == code) versions = exception;
  if (type == kTfLiteInt8) return versions.signed8;
  return type == kTfLiteInt16 ? versions.symmetric16 : 1;
}

}  // namespace

TensorWriter::TensorWriter(WrittenGraph* graph)
    : graph_(*graph), tensors_(graph->model->main().operands.size(), -1) {}

int32_t TensorWriter::add(WrittenTensor tensor) {
  graph_.tensors.push_back(std::move(tensor));
  return static_cast<int32_t>(graph_.tensors.size() - 1);
}

const uint8_t* TensorWriter::keep(std::span<const uint8_t> bytes) {
  auto& kept = graph_.values.emplace_back(bytes.size() / sizeof(uint64_t) + 1);
  if (!bytes.empty()) std::memcpy(kept.data(), bytes.data(), bytes.size());
  return reinterpret_cast<const uint8_t*>(kept.data());
}

Result<int32_t> TensorWriter::ofOperand(uint32_t index) {
  if (tensors_[index] >= 0) return tensors_[index];
  const graph::Operand& operand = graph_.model->main().operands[index];
  WrittenTensor tensor;
  tensor.type = typeOf(operand.type);
  if (tensor.type == kTfLiteNoType)
    return fail(ErrorCode::kUnsupported, "TensorFlow Lite has no type for {}.",
                graph::describe(operand));
  const bool isScalar = graph::isScalar(operand.type);
  if (isScalar && !operand.isConstant())
    return fail(ErrorCode::kUnsupported, "The scalar {} is not constant.",
                graph::describe(operand));
  tensor.dims = dimsOf(operand.dimensions);
  tensor.name = operand.name;
  HEARTH_ASSIGN(tensor.bytes, tflite_abi::tensorBytes(tensor.type, tensor.dims));
  if (!operand.perChannel.scales.empty()) {
    tensor.scales.assign(operand.perChannel.scales.begin(), operand.perChannel.scales.end());
    tensor.zeroPoints.assign(tensor.scales.size(), 0);
    tensor.channelDimension = static_cast<int32_t>(operand.perChannel.channelDim);
  } else if (operand.scale != 0.0f) {
    tensor.scales = {operand.scale};
    tensor.zeroPoints = {operand.zeroPoint};
  }
  if (operand.isConstant()) {
    const uint8_t* const data = graph_.model->constantData(operand);
    constexpr size_t kAlignment = 16;
    const bool isAligned = reinterpret_cast<uintptr_t>(data) % kAlignment == 0;
    tensor.data = isAligned ? data : keep({data, static_cast<size_t>(tensor.bytes)});
  }
  tensors_[index] = add(std::move(tensor));
  return tensors_[index];
}

Result<uint8_t*> TensorWriter::constantOf(uint32_t operand) {
  HEARTH_ASSIGN(const int32_t tensor, ofOperand(operand));
  auto& kept = graph_.values.emplace_back(at(tensor).bytes / sizeof(uint64_t) + 1);
  auto* const value = reinterpret_cast<uint8_t*>(kept.data());
  at(tensor).data = value;
  return value;
}

int32_t TensorWriter::integers(std::span<const int32_t> values, bool isScalar) {
  WrittenTensor tensor;
  tensor.type = kTfLiteInt32;
  if (!isScalar) tensor.dims = {static_cast<int32_t>(values.size())};
  tensor.bytes = values.size_bytes();
  tensor.data = keep({reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()});
  return add(std::move(tensor));
}

int32_t TensorWriter::matrix(std::span<const int32_t> values, int32_t columns) {
  const int32_t made = integers(values);
  at(made).dims = {static_cast<int32_t>(values.size()) / columns, columns};
  return made;
}

int32_t TensorWriter::constantLike(int32_t tensor, std::vector<int32_t> dims,
                                   std::span<const uint8_t> bytes) {
  const int32_t made = temporaryLike(tensor, std::move(dims));
  at(made).bytes = bytes.size();
  at(made).data = keep(bytes);
  return made;
}

int32_t TensorWriter::temporaryLike(int32_t tensor, std::vector<int32_t> dims) {
  WrittenTensor made = at(tensor);
  made.data = nullptr;
  made.name.clear();
  made.dims = std::move(dims);
  // The caller's dimensions are those of operands or about as large.
  made.bytes = tflite_abi::tensorBytes(made.type, made.dims).value_or(0);
  return add(std::move(made));
}

int32_t TensorWriter::quantization(TfLiteType type, float scale, int32_t zeroPoint) {
  WrittenTensor tensor;
  tensor.type = type;
  if (scale != 0.0f) {
    tensor.scales = {scale};
    tensor.zeroPoints = {zeroPoint};
  }
  tensor.bytes = tflite_abi::tensorBytes(type, {}).value_or(0);
  return add(std::move(tensor));
}

Result<int32_t> OperationWriter::input(size_t index) {
  if (!context_.hasInput(index))
    return fail(ErrorCode::kBadData, "Input {} of {} is omitted.", index, context_.describe());
  return tensors_.ofOperand(context_.operation->inputs[index]);
}

Result<int32_t> OperationWriter::inputOrNone(size_t index) {
  return context_.hasInput(index) ? input(index) : Result<int32_t>(-1);
}

Result<int32_t> OperationWriter::output(size_t index) {
  return tensors_.ofOperand(context_.operation->outputs[index]);
}

Result<int32_t> OperationWriter::variable(size_t input, size_t output) {
  const graph::Subgraph& main = graph_.model->main();
  const uint32_t before = context_.operation->inputs[input];
  const uint32_t after = context_.operation->outputs[output];
  const graph::Operand& from = main.operands[before];
  const graph::Operand& to = main.operands[after];
  size_t readers = 0;
  for (const graph::Operation& operation : main.operations)
    readers += static_cast<size_t>(std::ranges::count(operation.inputs, before));
  if (from.lifetime != graph::Lifetime::kSubgraphInput || readers != 1)
    return fail(ErrorCode::kUnsupported,
                "TensorFlow Lite has no {} with a state that is no input of the model, or that "
                "others read.",
                context_.describe());
  if (from.type != to.type || from.dimensions != to.dimensions || from.scale != to.scale ||
      from.zeroPoint != to.zeroPoint)
    return fail(ErrorCode::kUnsupported, "The state {} is another one, {}, after {}.",
                graph::describe(from), graph::describe(to), context_.describe());
  HEARTH_ASSIGN(const int32_t tensor, tensors_.ofOperand(before));
  tensors_.at(tensor).isVariable = true;
  tensors_.alias(after, tensor);
  return tensor;
}

Status OperationWriter::refuseChannelsFirst(size_t index) const {
  HEARTH_ASSIGN(const bool isChannelsFirst, context_.scalar<bool>(index, false));
  if (!isChannelsFirst) return {};
  return fail(ErrorCode::kUnsupported, "TensorFlow Lite has no {} with channels first.",
              context_.describe());
}

Status OperationWriter::add(Builtin code, std::vector<int32_t> inputs, std::vector<int32_t> outputs,
                            std::vector<uint8_t> parameters, std::optional<int32_t> version) {
  const int32_t since = tflite_abi::firstMinorWith(code);
  if (since > version_.minor)
    return fail(ErrorCode::kUnsupported,
                "TensorFlow Lite has {} since 2.{}; the delegate knows 2.{}.", context_.describe(),
                since, version_.minor);
  WrittenNode node;
  node.operation = operation_;
  node.code = code;
  // The type of the data, which the input of RESHAPE and most others is.
  const TfLiteType type = outputs.empty() ? kTfLiteNoType : tensors_.at(outputs[0]).type;
  node.version = version ? *version : versionFor(code, type);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.parameters = std::move(parameters);
  graph_.nodes.push_back(std::move(node));
  return {};
}

WriteOperation findOperationWriter(ops::OperationType type) {
  for (const auto family : {windowedOperations(), elementwiseOperations(), movingOperations(),
                            recurrentOperations(), customOperations()})
    if (const auto found = std::ranges::find(family, type, &OperationEntry::type);
        found != family.end())
      return found->write;
  return nullptr;
}

}  // namespace hearth::drivers::delegate
