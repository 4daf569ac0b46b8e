// SPDX-License-Identifier: Apache-2.0
// IF and WHILE, which refer to other subgraphs, and values that live on between runs: resource
// variables, and the subgraphs that initialise them before the first run.
#include "frontends/tflite/reader/text.h"
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperationType;
using schema::BuiltinOperator;

size_t sizeOf(const flatbuffers::Vector<int32_t>* list) {
  return list == nullptr ? 0 : list->size();
}

Result<uint32_t> subgraphArgument(OperatorView& view, int32_t index, size_t inputs,
                                  size_t outputs) {
  HEARTH_ASSIGN(const uint32_t operand, view.builder().subgraphOperand(index));
  const schema::SubGraph& subgraph =
      *view.builder().model().file().subgraph(static_cast<size_t>(index));
  if (sizeOf(subgraph.inputs()) != inputs || sizeOf(subgraph.outputs()) != outputs)
    return fail(ErrorCode::kBadData,
                "It calls subgraph {} with {} inputs and {} outputs, which has {} and {}.", index,
                inputs, outputs, sizeOf(subgraph.inputs()), sizeOf(subgraph.outputs()));
  return operand;
}

Status appendInputs(OperatorView& view, size_t first, std::vector<uint32_t>* arguments) {
  for (size_t i = first; i < view.inputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    arguments->push_back(input);
  }
  return {};
}

Result<std::vector<uint32_t>> allOutputs(OperatorView& view) {
  std::vector<uint32_t> outputs;
  for (size_t i = 0; i < view.outputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t output, view.output(i));
    outputs.push_back(output);
  }
  return outputs;
}

// Whether the file gives output `index` of this subgraph dimensions.
bool outputHasDimensions(OperatorView& view, int32_t subgraph, size_t index) {
  const FileView& file = view.builder().model().file();
  const schema::SubGraph& called = *file.subgraph(static_cast<size_t>(subgraph));
  const schema::Tensor* tensor =
      file.tensor(called, called.outputs()->Get(static_cast<uint32_t>(index)));
  return tensor != nullptr && tensor->shape() != nullptr && tensor->shape()->size() > 0;
}

Status translateIf(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::IfOptions>();
  HEARTH_ASSIGN(const uint32_t condition, view.input(0));
  const size_t inputs = view.inputCount() - 1;
  HEARTH_ASSIGN(const uint32_t thenGraph,
                subgraphArgument(view, options.then_subgraph_index(), inputs, view.outputCount()));
  HEARTH_ASSIGN(const uint32_t elseGraph,
                subgraphArgument(view, options.else_subgraph_index(), inputs, view.outputCount()));
  std::vector<uint32_t> arguments = {condition, thenGraph, elseGraph};
  HEARTH_TRY(appendInputs(view, 1, &arguments));
  HEARTH_ASSIGN(std::vector<uint32_t> outputs, allOutputs(view));
  // Branches whose results differ in rank.
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputHasDimensions(view, options.then_subgraph_index(), i) ||
        outputHasDimensions(view, options.else_subgraph_index(), i))
      view.builder().forgetUnsaidRank(outputs[i]);
  return view.emit(type, std::move(arguments), std::move(outputs));
}

Status translateWhile(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::WhileOptions>();
  const size_t inputs = view.inputCount();
  if (view.outputCount() != inputs)
    return fail(ErrorCode::kBadData, "It has {} inputs and {} outputs, they must be as many.",
                inputs, view.outputCount());
  HEARTH_ASSIGN(const uint32_t condition,
                subgraphArgument(view, options.cond_subgraph_index(), inputs, 1));
  HEARTH_ASSIGN(const uint32_t body,
                subgraphArgument(view, options.body_subgraph_index(), inputs, inputs));
  std::vector<uint32_t> arguments = {condition, body};
  HEARTH_TRY(appendInputs(view, 0, &arguments));
  HEARTH_ASSIGN(std::vector<uint32_t> outputs, allOutputs(view));
  return view.emit(type, std::move(arguments), std::move(outputs));
}

Status translateVarHandle(OperatorView& view, OperationType) {
  if (view.outputCount() != 1)
    return fail(ErrorCode::kBadData, "It has {} outputs, it must have one.", view.outputCount());
  return view.builder().addHandle(
      view.outputTensor(0), cleanText(view.options<schema::VarHandleOptions>().shared_name()));
}

Status translateCallOnce(OperatorView& view, OperationType) {
  return view.builder().initializeResources(
      view.options<schema::CallOnceOptions>().init_subgraph_index());
}

Status translateReadVariable(OperatorView& view, OperationType) {
  if (!view.hasInput(0) || view.outputCount() != 1)
    return fail(ErrorCode::kBadData, "It has {} inputs and {} outputs, it must have one of each.",
                view.inputCount(), view.outputCount());
  HEARTH_ASSIGN(const uint32_t value,
                view.builder().readResource(view.inputTensor(0), view.outputTensor(0)));
  return view.builder().bindTensor(view.outputTensor(0), value);
}

Status translateAssignVariable(OperatorView& view, OperationType) {
  HEARTH_ASSIGN(const uint32_t value, view.input(1));
  return view.builder().assignResource(view.inputTensor(0), value);
}

}  // namespace

std::span<const TranslatorEntry> controlFlowTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::IF, translateIf, OperationType::kIf},
      {BuiltinOperator::VAR_HANDLE, translateVarHandle, OperationType::kReshape},
      {BuiltinOperator::CALL_ONCE, translateCallOnce, OperationType::kReshape},
      {BuiltinOperator::READ_VARIABLE, translateReadVariable, OperationType::kReshape},
      {BuiltinOperator::ASSIGN_VARIABLE, translateAssignVariable, OperationType::kReshape},
      {BuiltinOperator::WHILE, translateWhile, OperationType::kWhile},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
