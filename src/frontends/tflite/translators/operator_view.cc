// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/operator_view.h"

#include <limits>
#include <utility>

#include "frontends/tflite/reader/tensor_operand.h"
#include "frontends/tflite/reader/text.h"

namespace hearth::tflite {

using graph::OperandType;
using graph::OperationType;

Status OperatorView::check() const {
  const size_t count =
      builder_.source().tensors() == nullptr ? 0 : builder_.source().tensors()->size();
  if (source_.inputs() != nullptr)
    for (const int32_t tensor : *source_.inputs())
      if (tensor < -1 || (tensor >= 0 && static_cast<size_t>(tensor) >= count))
        return fail(ErrorCode::kBadData, "It reads tensor {} of {}.", tensor, count);
  if (source_.outputs() != nullptr)
    for (const int32_t tensor : *source_.outputs())
      if (tensor < 0 || static_cast<size_t>(tensor) >= count)
        return fail(ErrorCode::kBadData, "It writes tensor {} of {}.", tensor, count);
  return {};
}

int64_t OperatorView::inputTensor(size_t index) const {
  return index < inputCount() ? source_.inputs()->Get(static_cast<uint32_t>(index)) : -1;
}

Result<uint32_t> OperatorView::input(size_t index) {
  if (!hasInput(index))
    return fail(ErrorCode::kBadData, "It lacks its input {}, it has {}.", index, inputCount());
  return builder_.operandOf(inputTensor(index));
}

Result<uint32_t> OperatorView::inputOr(size_t index, OperandType omitted) {
  return hasInput(index) ? input(index) : builder_.omitted(omitted);
}

Result<uint32_t> OperatorView::output(size_t index) {
  if (index >= outputCount())
    return fail(ErrorCode::kBadData, "It lacks its output {}, it has {}.", index, outputCount());
  HEARTH_ASSIGN(const uint32_t found,
                builder_.operandOf(source_.outputs()->Get(static_cast<uint32_t>(index))));
  if (operand(found).lifetime != graph::Lifetime::kTemporary)
    return fail(ErrorCode::kBadData, "It writes {}, which is an input, a constant or a variable.",
                graph::describe(operand(found)));
  return found;
}

Status OperatorView::takeOutputType(size_t input) {
  HEARTH_ASSIGN(const uint32_t found, output(0));
  HEARTH_ASSIGN(const schema::Tensor* const like, builder_.tensor(inputTensor(input)));
  HEARTH_ASSIGN(const schema::Tensor* const tensor, builder_.tensor(outputTensor(0)));
  if (tensor->type() == like->type() || builder_.isOutput(outputTensor(0))) return {};
  graph::Operand& result = builder_.operand(found);
  return setType(*tensor, like->type(), result.name, builder_.scaleLists(), &result);
}

Result<uint32_t> OperatorView::nextValue(size_t index) {
  if (!hasInput(index))
    return fail(ErrorCode::kBadData, "It lacks its input {}, it has {}.", index, inputCount());
  return builder_.nextValueOf(inputTensor(index));
}

Result<uint32_t> OperatorView::intTensorInput(size_t index) {
  HEARTH_ASSIGN(const uint32_t found, input(index));
  const graph::Operand& source = operand(found);
  if (source.type == OperandType::kTensorInt32 && !source.isRankZeroTensor) return found;
  if (!source.isConstant()) {
    if (source.type != OperandType::kTensorInt64) return found;
    graph::Operand narrow = source;
    narrow.name.clear();
    narrow.type = OperandType::kTensorInt32;
    narrow.lifetime = graph::Lifetime::kTemporary;
    HEARTH_ASSIGN(const uint32_t added, builder_.addOperand(std::move(narrow)));
    HEARTH_TRY(emit(OperationType::kCast, {found}, {added}));
    return added;
  }
  graph::Operand like;
  like.type = OperandType::kTensorInt32;
  like.dimensions = source.isRankZeroTensor ? graph::Dimensions{1} : source.dimensions;
  HEARTH_ASSIGN(const std::vector<int64_t> wide, constantInts(index));
  std::vector<int32_t> values;
  values.reserve(wide.size());
  for (const int64_t value : wide) {
    // "To the end" is the greatest number of the type in limits of slices.
    if (value > std::numeric_limits<int32_t>::max())
      values.push_back(std::numeric_limits<int32_t>::max());
    else if (value < std::numeric_limits<int32_t>::min())
      values.push_back(std::numeric_limits<int32_t>::min());
    else
      values.push_back(static_cast<int32_t>(value));
  }
  return builder_.constantTensor(std::move(like), {reinterpret_cast<const uint8_t*>(values.data()),
                                                   values.size() * sizeof(int32_t)});
}

Result<std::vector<int64_t>> OperatorView::constantInts(size_t index) {
  HEARTH_ASSIGN(const uint32_t found, input(index));
  return builder_.constantInts(found);
}

Result<int32_t> OperatorView::constantInt(size_t index) {
  HEARTH_ASSIGN(const std::vector<int64_t> values, constantInts(index));
  if (values.size() != 1)
    return fail(ErrorCode::kBadData, "Its input {} has {} elements, it must have one.", index,
                values.size());
  if (values[0] < std::numeric_limits<int32_t>::min() ||
      values[0] > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kBadData, "Its input {} is {}, which does not fit in 32 bits.", index,
                values[0]);
  return static_cast<int32_t>(values[0]);
}

const schema::Tensor* OperatorView::firstOutput() const {
  if (outputCount() == 0) return nullptr;
  return builder_.model().file().tensor(builder_.source(), source_.outputs()->Get(0));
}

std::string OperatorView::name() {
  const schema::Tensor* const tensor = firstOutput();
  return tensor == nullptr ? std::string() : cleanText(tensor->name());
}

std::string_view OperatorView::nameInFile() const {
  const schema::Tensor* const tensor = firstOutput();
  if (tensor == nullptr || tensor->name() == nullptr) return {};
  return {tensor->name()->c_str(), tensor->name()->size()};
}

Result<uint32_t> OperatorView::floatTensor(float value, graph::Dimensions dimensions) {
  graph::Operand like;
  like.type = graph::OperandType::kTensorFloat32;
  like.isRankZeroTensor = dimensions.empty();
  like.dimensions = std::move(dimensions);
  return builder_.constantTensor(std::move(like),
                                 {reinterpret_cast<const uint8_t*>(&value), sizeof(value)});
}

Result<uint32_t> OperatorView::floatsLike(uint32_t operand) {
  graph::Operand floats;
  floats.type = graph::OperandType::kTensorFloat32;
  floats.dimensions = builder_.operand(operand).dimensions;
  floats.isRankZeroTensor = builder_.operand(operand).isRankZeroTensor;
  return builder_.addOperand(std::move(floats));
}

Result<uint32_t> OperatorView::rescaledLike(uint32_t values, uint32_t other) {
  const graph::Operand& source = operand(values);
  const graph::Operand& target = operand(other);
  if ((source.scale == target.scale && source.zeroPoint == target.zeroPoint) ||
      source.scale == 0.0f || target.scale == 0.0f)
    return values;
  HEARTH_ASSIGN(const uint32_t rescaled, builder_.temporaryLike(values));
  graph::Operand& copy = builder_.operand(rescaled);
  copy.type = operand(other).type;
  copy.scale = operand(other).scale;
  copy.zeroPoint = operand(other).zeroPoint;
  HEARTH_TRY(emit(graph::OperationType::kQuantize, {values}, {rescaled}));
  return rescaled;
}

Result<uint32_t> OperatorView::dequantized(uint32_t values) {
  if (operand(values).type == graph::OperandType::kTensorFloat32) return values;
  HEARTH_ASSIGN(const uint32_t floats, floatsLike(values));
  HEARTH_TRY(emit(graph::OperationType::kDequantize, {values}, {floats}));
  return floats;
}

bool OperatorView::isQuantized8(uint32_t index) const {
  const OperandType type = operand(index).type;
  return type == OperandType::kTensorQuant8Asymm || type == OperandType::kTensorQuant8AsymmSigned;
}

bool OperatorView::isQuantized16(uint32_t index) const {
  const graph::Operand& found = operand(index);
  return found.type == OperandType::kTensorQuant16Symm ||
         (found.type == OperandType::kTensorInt16 && found.scale > 0.0f);
}

Result<uint32_t> OperatorView::indices(size_t index) {
  HEARTH_ASSIGN(const uint32_t found, input(index));
  if (operand(found).type != OperandType::kTensorInt16) return found;
  HEARTH_ASSIGN(const uint32_t wide, builder_.temporaryLike(found));
  builder_.operand(wide).type = OperandType::kTensorInt32;
  builder_.operand(wide).scale = 0.0f;
  builder_.operand(wide).zeroPoint = 0;
  HEARTH_TRY(emit(OperationType::kCast, {found}, {wide}));
  return wide;
}

Status OperatorView::emit(OperationType type, std::vector<uint32_t> inputs,
                          std::vector<uint32_t> outputs) {
  // Names may be long, and an operation without one is called as its first output.
  std::string own;
  if (outputs.empty() || operand(outputs.front()).name != nameInFile()) own = name();
  return builder_.emit(type, std::move(inputs), std::move(outputs), std::move(own));
}

Status OperatorView::emit(OperationType type, std::vector<uint32_t> inputs) {
  HEARTH_ASSIGN(const uint32_t target, output(0));
  return emit(type, std::move(inputs), {target});
}

Result<uint32_t> OperatorView::emitNew(OperationType type, std::vector<uint32_t> inputs,
                                       graph::Dimensions dimensions, OperandType result) {
  graph::Operand operand;
  operand.type = result;
  operand.dimensions = std::move(dimensions);
  HEARTH_ASSIGN(const uint32_t added, builder_.addOperand(std::move(operand)));
  HEARTH_TRY(emit(type, std::move(inputs), {added}));
  return added;
}

Result<Activation> OperatorView::planActivation(schema::ActivationFunctionType type, bool canFuse) {
  Activation activation;
  HEARTH_ASSIGN(activation.output, output(0));
  activation.target = activation.output;
  switch (type) {
    case schema::ActivationFunctionType::NONE:
      return activation;
    case schema::ActivationFunctionType::RELU:
      activation.fuse = kFuseRelu;
      activation.following = OperationType::kRelu;
      break;
    case schema::ActivationFunctionType::RELU_N1_TO_1:
      activation.fuse = kFuseRelu1;
      activation.following = OperationType::kRelu1;
      break;
    case schema::ActivationFunctionType::RELU6:
      activation.fuse = kFuseRelu6;
      activation.following = OperationType::kRelu6;
      break;
    case schema::ActivationFunctionType::TANH: {
      const OperandType operandType = operand(activation.output).type;
      // The file lacks the scale in front of a quantised TANH.
      if (operandType != OperandType::kTensorFloat32 && operandType != OperandType::kTensorFloat16)
        return fail(ErrorCode::kUnsupported,
                    "Its fused activation TANH is only supported for floats, its output is {}.",
                    graph::describe(operand(activation.output)));
      activation.following = OperationType::kTanh;
      canFuse = false;
      break;
    }
    default:
      return fail(ErrorCode::kUnsupported, "Its fused activation {} ({}) is not supported.",
                  static_cast<int>(type), schema::EnumNameActivationFunctionType(type));
  }
  if (canFuse) {
    activation.following.reset();
    return activation;
  }
  activation.fuse = kFuseNone;
  HEARTH_ASSIGN(activation.target, builder_.temporaryLike(activation.output));
  return activation;
}

Status OperatorView::finishActivation(const Activation& activation) {
  if (!activation.following) return {};
  return emit(*activation.following, {activation.target}, {activation.output});
}

Result<uint32_t> OperatorView::padding(schema::Padding padding) {
  switch (padding) {
    case schema::Padding::SAME:
      return scalar(kPaddingSame);
    case schema::Padding::VALID:
      return scalar(kPaddingValid);
    default:
      return fail(ErrorCode::kBadData, "Its padding {} is unknown.", static_cast<int>(padding));
  }
}

}  // namespace hearth::tflite
