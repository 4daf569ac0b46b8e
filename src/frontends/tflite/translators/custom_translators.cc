// SPDX-License-Identifier: Apache-2.0
// Custom operations of which the front end knows nothing but the operator that the program
// registered under their name.
#include <algorithm>
#include <utility>

#include "frontends/tflite/reader/operator_reader.h"
#include "frontends/tflite/translators/translators.h"
#include "hal/device_operators.h"
#include "ops/custom_operator.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

Result<uint32_t> bytesOperand(SubgraphBuilder& builder, std::span<const uint8_t> bytes) {
  if (bytes.empty()) return builder.omitted(OperandType::kTensorQuant8Asymm);
  graph::Operand operand;
  operand.type = OperandType::kTensorQuant8Asymm;
  operand.dimensions = {static_cast<uint32_t>(bytes.size())};
  operand.scale = 1.0f;
  return builder.constantTensor(std::move(operand), bytes);
}

std::vector<ops::Tensor> tensorsOf(SubgraphBuilder& builder, std::span<const uint32_t> operands) {
  std::vector<ops::Tensor> tensors;
  for (const uint32_t index : operands) {
    const graph::Operand& operand = builder.operand(index);
    ops::Tensor tensor;
    tensor.operand = &operand;
    tensor.dimensions = operand.dimensions;
    tensor.isPresent = operand.hasValue();
    tensor.hasKnownShape = graph::isFullySpecified(operand);
    // Inputs are only read.
    if (operand.isConstant())
      tensor.data = const_cast<uint8_t*>(builder.model().model().constantData(operand));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Gives the outputs what the operator says of them, where the file already tells the shapes of all
// inputs. Files often hold no shapes for such outputs, or wrong types.
Status describeOutputs(SubgraphBuilder& builder, const ops::CustomOperator& custom,
                       ops::CustomCall call, std::span<const uint32_t> inputs,
                       std::span<const uint32_t> outputs) {
  HEARTH_ASSIGN(const auto node, custom.makeNode(call));
  const std::vector<ops::Tensor> arguments = tensorsOf(builder, inputs);
  const std::vector<ops::Tensor> results = tensorsOf(builder, outputs);
  // What the file says can only hold for one run.
  const auto forget = [&]() -> Status {
    for (const uint32_t output : outputs) std::ranges::fill(builder.operand(output).dimensions, 0u);
    return {};
  };
  for (const ops::Tensor& input : arguments)
    if (input.isPresent && !input.hasKnownShape)
      return custom.name().starts_with(kReservedPrefix) ? forget() : Status();
  call.inputs = arguments;
  call.outputs = results;
  HEARTH_ASSIGN(ops::CustomOutputs said, node->describeOutputs(call));
  if (said.needsValues) return forget();
  if (said.outputs.size() != outputs.size())
    return fail(ErrorCode::kBadData, "Its operator describes {} outputs of {}.",
                said.outputs.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    graph::Operand& output = builder.operand(outputs[i]);
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

// Appends an operation of a registered operator. The outputs from `firstState` on are new values of
// variables, whose shapes stay.
Status emitRegistered(SubgraphBuilder& builder, std::string_view name, ops::CustomCall call,
                      const std::vector<uint32_t>& arguments, std::vector<uint32_t> outputs,
                      size_t firstState, std::string label) {
  const ops::CustomOperator* const custom = ops::findCustomOperator(name);
  if (custom == nullptr) return ops::unknownCustomOperator(name);
  const auto nameBytes = std::span(reinterpret_cast<const uint8_t*>(name.data()), name.size());
  HEARTH_ASSIGN(const uint32_t nameOperand, bytesOperand(builder, nameBytes));
  HEARTH_ASSIGN(const uint32_t version, builder.scalar(custom->version()));
  HEARTH_ASSIGN(const uint32_t codeVersion, builder.scalar(call.codeVersion));
  HEARTH_ASSIGN(const uint32_t options, bytesOperand(builder, call.options));
  std::vector<uint32_t> inputs = {nameOperand, version, codeVersion, options};
  inputs.insert(inputs.end(), arguments.begin(), arguments.end());
  for (size_t i = 0; i < firstState; ++i) {
    // Its dimensions are about to change: those of a constant must stay as long as its bytes.
    const graph::Operand& output = builder.operand(outputs[i]);
    if (output.lifetime != graph::Lifetime::kTemporary)
      return fail(ErrorCode::kBadData, "It writes {}, which is an input, a constant or a variable.",
                  graph::describe(output));
    // An empty shape means nothing here.
    builder.operand(outputs[i]).isRankZeroTensor = false;
  }
  HEARTH_TRY(describeOutputs(builder, *custom, call, arguments, outputs));
  return builder.emit(OperationType::kCustom, std::move(inputs), std::move(outputs),
                      std::move(label));
}

Status translateRegistered(OperatorView& view, OperationType /*type*/) {
  SubgraphBuilder& builder = view.builder();
  const FileView& file = builder.model().file();
  const schema::OperatorCode& code = *file.operatorCode(view.source().opcode_index());
  ops::CustomCall call;
  HEARTH_ASSIGN(call.options, customOptionsOf(file, view.source()));
  call.codeVersion = code.version();
  std::vector<uint32_t> inputs;
  for (size_t i = 0; i < view.inputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.inputOr(i, OperandType::kTensorFloat32));
    inputs.push_back(input);
  }
  std::vector<uint32_t> outputs;
  for (size_t i = 0; i < view.outputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t output, view.output(i));
    outputs.push_back(output);
  }
  const size_t count = outputs.size();
  return emitRegistered(builder, code.custom_code()->string_view(), call, inputs,
                        std::move(outputs), count, view.name());
}

constexpr TranslatorEntry kRegistered = {BuiltinOperator::CUSTOM, translateRegistered,
                                         OperationType::kCustom};

}  // namespace

Status translateReplacement(SubgraphBuilder& builder, const Replacement& replacement) {
  ops::CustomCall call;
  call.options = replacement.options;
  call.codeVersion = 1;
  std::vector<uint32_t> inputs;
  for (const int32_t tensor : replacement.inputs) {
    HEARTH_ASSIGN(const uint32_t input, tensor < 0 ? builder.omitted(OperandType::kTensorFloat32)
                                                   : builder.operandOf(tensor));
    inputs.push_back(input);
  }
  std::vector<uint32_t> outputs;
  for (const int32_t tensor : replacement.outputs) {
    HEARTH_ASSIGN(const uint32_t output, builder.operandOf(tensor));
    outputs.push_back(output);
  }
  const size_t firstState = outputs.size();
  for (const int32_t tensor : replacement.inputs) {
    if (tensor < 0 || !builder.isVariable(tensor)) continue;
    HEARTH_ASSIGN(const uint32_t next, builder.nextValueOf(tensor));
    outputs.push_back(next);
  }
  return emitRegistered(builder, replacement.name, call, inputs, std::move(outputs), firstState,
                        {});
}

const TranslatorEntry* registeredTranslator(std::string_view name) {
  if (name.starts_with(kReservedPrefix)) return nullptr;
  return hal::findOperator(name) == nullptr ? nullptr : &kRegistered;
}

}  // namespace hearth::tflite
