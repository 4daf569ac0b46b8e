// SPDX-License-Identifier: Apache-2.0
// CUSTOM of the extension: an operator that the program registered (ops/custom_operator.h describes
// the inputs). It has one or more outputs. Only front ends that read files create it.
#include <algorithm>
#include <limits>
#include <string>

#include "ops/custom_operator.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status requireConstant(const Signature& signature, size_t index, TypeSet type) {
  HEARTH_TRY(signature.inputType(index, type));
  if (signature.input(index).isConstant()) return {};
  return fail(ErrorCode::kBadData, "Input {} of {} must be a constant.", index,
              signature.describe());
}

Status requireTensor(const Signature& signature, const graph::Operand& operand, bool takesStrings) {
  if (operand.type == OperandType::kTensorString && !takesStrings)
    return fail(ErrorCode::kUnsupported,
                "An argument of {} is {}; operators of the program get no strings.",
                signature.describe(), graph::describe(operand));
  if (!graph::isScalar(operand.type) && operand.type != OperandType::kModel) return {};
  return fail(ErrorCode::kBadData, "An argument of {} is {}, it must be a tensor.",
              signature.describe(), graph::describe(operand));
}

std::string_view textOf(const graph::Model& model, const graph::Operand& operand) {
  return {reinterpret_cast<const char*>(model.constantData(operand)), operand.location.length};
}

Status validate(const Signature& signature) {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  HEARTH_TRY(signature.counts(kCustomFirstArgument, kMost, 1, kMost));
  HEARTH_TRY(requireConstant(signature, kCustomName, OperandType::kTensorQuant8Asymm));
  HEARTH_TRY(requireConstant(signature, kCustomVersion, OperandType::kInt32));
  HEARTH_TRY(requireConstant(signature, kCustomCodeVersion, OperandType::kInt32));
  if (signature.hasInput(kCustomOptions))
    HEARTH_TRY(requireConstant(signature, kCustomOptions, OperandType::kTensorQuant8Asymm));
  const std::string_view name = textOf(signature.model(), signature.input(kCustomName));
  const CustomOperator* const custom = findCustomOperator(name);
  if (custom == nullptr) return unknownCustomOperator(name);
  for (size_t i = kCustomFirstArgument; i < signature.inputCount(); ++i)
    HEARTH_TRY(requireTensor(signature, signature.input(i), custom->takesStrings()));
  for (size_t i = 0; i < signature.outputCount(); ++i)
    HEARTH_TRY(requireTensor(signature, signature.output(i), custom->takesStrings()));
  int32_t version = 0;
  const std::string_view bytes = textOf(signature.model(), signature.input(kCustomVersion));
  std::copy_n(bytes.data(), sizeof version, reinterpret_cast<char*>(&version));
  if (version != custom->version())
    return fail(ErrorCode::kUnsupported,
                "The model was prepared with version {} of the custom operator \"{}\"; version {} "
                "is registered.",
                version, name, custom->version());
  return {};
}

std::string nameOf(const OperationContext& context) {
  const Tensor& name = context.inputs[kCustomName];
  return {name.as<const char>(), name.elementCount()};
}

CustomCall callOf(const OperationContext& context) {
  CustomCall call;
  if (context.hasInput(kCustomOptions)) {
    const Tensor& options = context.inputs[kCustomOptions];
    call.options = {options.as<const uint8_t>(), options.elementCount()};
  }
  std::copy_n(context.inputs[kCustomCodeVersion].as<const char>(), sizeof call.codeVersion,
              reinterpret_cast<char*>(&call.codeVersion));
  call.inputs = std::span(context.inputs).subspan(kCustomFirstArgument);
  call.outputs = context.outputs;
  return call;
}

std::string contextOf(const OperationContext& context) {
  return "in the custom operator \"" + nameOf(context) + "\"";
}

Result<std::shared_ptr<const CustomNode>> makeNode(const OperationContext& context) {
  const std::string name = nameOf(context);
  const CustomOperator* const custom = findCustomOperator(name);
  if (custom == nullptr) return unknownCustomOperator(name);
  CustomCall call = callOf(context);
  call.inputs = {};
  call.outputs = {};
  auto node = custom->makeNode(call);
  if (!node) return std::unexpected(std::move(node.error()).addContext(contextOf(context)));
  return node;
}

// Asks the operator about its outputs. The operator sees those input values that are known.
Result<std::vector<Dimensions>> askForShapes(const OperationContext& context,
                                             const CustomNode& node,
                                             std::span<const Tensor> inputs) {
  CustomCall call = callOf(context);
  call.inputs = inputs;
  auto said = node.describeOutputs(call);
  if (!said) return std::unexpected(std::move(said.error()).addContext(contextOf(context)));
  std::vector<Dimensions> dimensions;
  if (said->needsValues) return dimensions;
  if (said->outputs.size() != call.outputs.size())
    return fail(ErrorCode::kBadData, "The custom operator \"{}\" describes {} outputs of {}.",
                nameOf(context), said->outputs.size(), call.outputs.size());
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const graph::Operand& made = said->outputs[i];
    const graph::Operand& declared = *call.outputs[i].operand;
    if (call.outputs[i].isPresent && (made.type != declared.type || made.scale != declared.scale ||
                                      made.zeroPoint != declared.zeroPoint))
      return fail(ErrorCode::kBadData,
                  "The custom operator \"{}\" makes output {} {} with scale {} and zero point {}; "
                  "it is {} with scale {} and zero point {}.",
                  nameOf(context), i, graph::nameOf(made.type), made.scale, made.zeroPoint,
                  graph::nameOf(declared.type), declared.scale, declared.zeroPoint);
    dimensions.push_back(made.dimensions);
  }
  return dimensions;
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, kCustomOptions, 0));
  const auto arguments = std::span(context.inputs).subspan(kCustomFirstArgument);
  std::vector<Dimensions> shapes;
  for (const Tensor& input : arguments) shapes.push_back(input.dimensions);
  if (context.custom == nullptr || context.custom->inputs != shapes) {
    auto prepared = std::make_shared<PreparedCustom>();
    if (context.custom != nullptr) {
      prepared->node = context.custom->node;
    } else {
      HEARTH_ASSIGN(prepared->node, makeNode(context));
    }
    // Only constants have data here, so that the answer holds for every run.
    std::vector<Tensor> constants(arguments.begin(), arguments.end());
    for (Tensor& input : constants)
      if (!input.operand->isConstant()) input.data = nullptr;
    HEARTH_ASSIGN(prepared->outputs, askForShapes(context, *prepared->node, constants));
    prepared->inputs = std::move(shapes);
    context.custom = std::move(prepared);
  }
  std::vector<Dimensions> outputs = context.custom->outputs;
  if (outputs.empty()) {
    for (size_t i = 0; i < arguments.size(); ++i)
      if (arguments[i].isPresent && arguments[i].data == nullptr)
        return needsRuntimeValue(context, kCustomFirstArgument + i);
    HEARTH_ASSIGN(outputs, askForShapes(context, *context.custom->node, arguments));
    if (outputs.empty())
      return fail(ErrorCode::kOpFailed,
                  "The custom operator \"{}\" asks for values of its inputs and has them all.",
                  nameOf(context));
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    HEARTH_TRY(context.setOutputDimensions(i, std::move(outputs[i])));
  return {};
}

Status execute(OperationContext& context) {
  Status computed = context.custom->node->compute(callOf(context));
  if (!computed) return std::unexpected(std::move(computed.error()).addContext(contextOf(context)));
  return {};
}

}  // namespace

const OperationDefinition kCustomOperation = {OperationType::kCustom, validate, prepare, execute};

}  // namespace hearth::ops
