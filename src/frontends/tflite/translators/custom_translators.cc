// SPDX-License-Identifier: Apache-2.0
// Custom operations of which the front end knows nothing but the operator that the program
// registered under their name.
#include <utility>

#include "frontends/tflite/translators/translators.h"
#include "ops/custom_operator.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

// The options of the operation. Long ones may lie behind the tables of the file.
Result<std::span<const uint8_t>> optionsOf(OperatorView& view) {
  const schema::Operator& source = view.source();
  if (const auto* bytes = source.custom_options(); bytes != nullptr && bytes->size() != 0)
    return std::span(bytes->data(), bytes->size());
  const uint64_t offset = source.large_custom_options_offset();
  const uint64_t size = source.large_custom_options_size();
  // Converters write an offset of 1 where there are none.
  if (offset <= 1 || size == 0) return std::span<const uint8_t>();
  const memory::PoolRef& file = view.builder().model().file().pool();
  if (offset > file->size() || size > file->size() - offset)
    return fail(ErrorCode::kBadData,
                "Its options are {} bytes at {}, outside of the file of {} bytes.", size, offset,
                file->size());
  return std::span(file->data() + offset, size);
}

Result<uint32_t> bytesOperand(OperatorView& view, std::span<const uint8_t> bytes) {
  if (bytes.empty()) return view.builder().omitted(OperandType::kTensorQuant8Asymm);
  graph::Operand operand;
  operand.type = OperandType::kTensorQuant8Asymm;
  operand.dimensions = {static_cast<uint32_t>(bytes.size())};
  operand.scale = 1.0f;
  return view.builder().constantTensor(std::move(operand), bytes);
}

std::vector<ops::Tensor> tensorsOf(OperatorView& view, std::span<const uint32_t> operands) {
  std::vector<ops::Tensor> tensors;
  for (const uint32_t index : operands) {
    const graph::Operand& operand = view.operand(index);
    ops::Tensor tensor;
    tensor.operand = &operand;
    tensor.dimensions = operand.dimensions;
    tensor.isPresent = operand.hasValue();
    tensor.hasKnownShape = graph::isFullySpecified(operand);
    // Inputs are only read.
    if (operand.isConstant())
      tensor.data = const_cast<uint8_t*>(view.builder().model().model().constantData(operand));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Gives the outputs what the operator says of them, where the file already tells the shapes of all
// inputs. Files often hold no shapes for such outputs, or wrong types.
Status describeOutputs(OperatorView& view, const ops::CustomOperator& custom, ops::CustomCall call,
                       std::span<const uint32_t> inputs, std::span<const uint32_t> outputs) {
  HEARTH_ASSIGN(const auto node, custom.makeNode(call));
  const std::vector<ops::Tensor> arguments = tensorsOf(view, inputs);
  const std::vector<ops::Tensor> results = tensorsOf(view, outputs);
  for (const ops::Tensor& input : arguments)
    if (input.isPresent && !input.hasKnownShape) return {};
  call.inputs = arguments;
  call.outputs = results;
  HEARTH_ASSIGN(ops::CustomOutputs said, node->describeOutputs(call));
  if (said.needsValues) return {};
  if (said.outputs.size() != outputs.size())
    return fail(ErrorCode::kBadData, "Its operator describes {} outputs of {}.",
                said.outputs.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    graph::Operand& output = view.builder().operand(outputs[i]);
    const graph::Operand& made = said.outputs[i];
    output.type = made.type;
    output.scale = made.scale;
    output.zeroPoint = made.zeroPoint;
    output.perChannel = {};
    output.dimensions = made.dimensions;
    output.isRankZeroTensor = made.dimensions.empty();
  }
  return {};
}

Status translateRegistered(OperatorView& view, OperationType type) {
  const schema::OperatorCode& code =
      *view.builder().model().file().operatorCode(view.source().opcode_index());
  const std::string_view name = code.custom_code()->string_view();
  const ops::CustomOperator* const custom = ops::findCustomOperator(name);
  if (custom == nullptr) return ops::unknownCustomOperator(name);
  ops::CustomCall call;
  HEARTH_ASSIGN(call.options, optionsOf(view));
  call.codeVersion = code.version();
  const auto nameBytes = std::span(reinterpret_cast<const uint8_t*>(name.data()), name.size());
  HEARTH_ASSIGN(const uint32_t nameOperand, bytesOperand(view, nameBytes));
  HEARTH_ASSIGN(const uint32_t version, view.scalar(custom->version()));
  HEARTH_ASSIGN(const uint32_t codeVersion, view.scalar(call.codeVersion));
  HEARTH_ASSIGN(const uint32_t options, bytesOperand(view, call.options));
  std::vector<uint32_t> inputs = {nameOperand, version, codeVersion, options};
  for (size_t i = 0; i < view.inputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.inputOr(i, OperandType::kTensorFloat32));
    inputs.push_back(input);
  }
  std::vector<uint32_t> outputs;
  for (size_t i = 0; i < view.outputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t output, view.output(i));
    // Its dimensions are about to change: those of a constant must stay as long as its bytes.
    if (view.operand(output).lifetime != graph::Lifetime::kTemporary)
      return fail(ErrorCode::kBadData, "It writes {}, which is an input, a constant or a variable.",
                  graph::describe(view.operand(output)));
    // An empty shape means nothing here.
    view.builder().operand(output).isRankZeroTensor = false;
    outputs.push_back(output);
  }
  HEARTH_TRY(describeOutputs(view, *custom, call,
                             std::span(inputs).subspan(ops::kCustomFirstArgument), outputs));
  return view.emit(type, std::move(inputs), std::move(outputs));
}

constexpr TranslatorEntry kRegistered = {BuiltinOperator::CUSTOM, translateRegistered,
                                         OperationType::kCustom};

}  // namespace

const TranslatorEntry* registeredTranslator(std::string_view name) {
  return ops::findCustomOperator(name) == nullptr ? nullptr : &kRegistered;
}

}  // namespace hearth::tflite
