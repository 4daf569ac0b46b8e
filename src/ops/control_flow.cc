// SPDX-License-Identifier: Apache-2.0
// Signatures of IF and WHILE. Interpreter runs them; they have no kernel that could stand alone.
#include "ops/control_flow.h"

#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

// Whether a value of `given` can be passed on as `wanted`: NNAPI requires equal types and
// quantisation, and dimensions that do not contradict each other.
Status checkCompatible(const graph::Operand& given, const graph::Operand& wanted, const char* role,
                       size_t index) {
  if (!given.hasValue()) return {};
  bool fits = given.type == wanted.type && given.scale == wanted.scale &&
              given.zeroPoint == wanted.zeroPoint &&
              given.perChannel.channelDim == wanted.perChannel.channelDim &&
              given.perChannel.scales == wanted.perChannel.scales &&
              given.driverElementSize == wanted.driverElementSize &&
              given.driverData == wanted.driverData;
  if (fits && !given.dimensions.empty() && !wanted.dimensions.empty()) {
    fits = given.dimensions.size() == wanted.dimensions.size();
    for (size_t i = 0; fits && i < given.dimensions.size(); ++i)
      fits = given.dimensions[i] == 0 || wanted.dimensions[i] == 0 ||
             given.dimensions[i] == wanted.dimensions[i];
  }
  if (!fits)
    return fail(ErrorCode::kBadData, "{} {} is {}, the referenced graph has {} there.", role, index,
                graph::describe(given), graph::describe(wanted));
  return {};
}

Result<const graph::Subgraph*> referencedSubgraph(const graph::Model& model,
                                                  const graph::Subgraph& subgraph,
                                                  const graph::Operation& operation, size_t input) {
  const graph::Operand& operand = subgraph.operands[operation.inputs[input]];
  if (operand.lifetime != graph::Lifetime::kSubgraph)
    return fail(ErrorCode::kBadData, "Input {} of {} is {}, it must be a MODEL.", input,
                graph::nameOf(operation.type), graph::describe(operand));
  return &model.subgraphs[operand.subgraphIndex];
}

Status checkCondition(const graph::Operand& operand, const char* role) {
  const Dimensions& dimensions = operand.dimensions;
  const bool fits = operand.type == OperandType::kTensorBool8 && operand.hasValue() &&
                    (dimensions.empty() || (dimensions.size() == 1 && dimensions[0] <= 1));
  if (!fits)
    return fail(ErrorCode::kBadData, "The condition of {} is {}, it must be TENSOR_BOOL8[1].", role,
                operand.hasValue() ? graph::describe(operand) : "omitted");
  return {};
}

Status checkCount(const char* what, size_t given, size_t wanted) {
  if (given != wanted)
    return fail(ErrorCode::kBadData, "{}: {} are given and {} are needed.", what, given, wanted);
  return {};
}

Status checkInputs(const char* name, const graph::Operation& operation, size_t least) {
  if (operation.inputs.size() < least)
    return fail(ErrorCode::kBadData, "{} has {} inputs, it needs at least {}.", name,
                operation.inputs.size(), least);
  return {};
}

Status validateIf(const Signature& signature) {
  const graph::Subgraph& subgraph = signature.subgraph();
  const graph::Operation& operation = signature.operation();
  HEARTH_TRY(checkInputs("IF", operation, kIfFirstInput));
  HEARTH_TRY(checkCondition(subgraph.operands[operation.inputs[kIfCondition]], "IF"));
  for (size_t branch : {kIfThen, kIfElse}) {
    HEARTH_ASSIGN(const graph::Subgraph* target,
                  referencedSubgraph(signature.model(), subgraph, operation, branch));
    HEARTH_TRY(checkCount("Inputs of a branch of IF", operation.inputs.size() - kIfFirstInput,
                          target->inputs.size()));
    HEARTH_TRY(
        checkCount("Outputs of a branch of IF", operation.outputs.size(), target->outputs.size()));
    for (size_t i = 0; i < target->inputs.size(); ++i)
      HEARTH_TRY(checkCompatible(subgraph.operands[operation.inputs[kIfFirstInput + i]],
                                 target->operands[target->inputs[i]], "IF's outer input", i));
    for (size_t i = 0; i < target->outputs.size(); ++i)
      HEARTH_TRY(checkCompatible(subgraph.operands[operation.outputs[i]],
                                 target->operands[target->outputs[i]], "IF's output", i));
  }
  return {};
}

// The body takes m + k + n inputs (in and out, state, input only) and gives m + k outputs; the
// condition takes the same inputs; WHILE gives m outputs.
Status validateWhile(const Signature& signature) {
  const graph::Subgraph& subgraph = signature.subgraph();
  const graph::Operation& operation = signature.operation();
  HEARTH_TRY(checkInputs("WHILE", operation, kWhileFirstInput));
  HEARTH_ASSIGN(const graph::Subgraph* condition,
                referencedSubgraph(signature.model(), subgraph, operation, kWhileCondition));
  HEARTH_ASSIGN(const graph::Subgraph* body,
                referencedSubgraph(signature.model(), subgraph, operation, kWhileBody));
  const size_t count = operation.inputs.size() - kWhileFirstInput;
  HEARTH_TRY(checkCount("Inputs of WHILE's condition", count, condition->inputs.size()));
  HEARTH_TRY(checkCount("Inputs of WHILE's body", count, body->inputs.size()));
  HEARTH_TRY(checkCount("Outputs of WHILE's condition", condition->outputs.size(), 1));
  HEARTH_TRY(checkCondition(condition->operands[condition->outputs[0]], "WHILE"));
  if (body->outputs.size() > count || operation.outputs.size() > body->outputs.size())
    return fail(ErrorCode::kBadData,
                "WHILE has {} inputs and {} outputs, which its body with {} outputs does not fit.",
                count, operation.outputs.size(), body->outputs.size());
  for (size_t i = 0; i < count; ++i) {
    const graph::Operand& outer = subgraph.operands[operation.inputs[kWhileFirstInput + i]];
    const graph::Operand& bodyInput = body->operands[body->inputs[i]];
    HEARTH_TRY(checkCompatible(outer, bodyInput, "WHILE's input", i));
    HEARTH_TRY(
        checkCompatible(outer, condition->operands[condition->inputs[i]], "WHILE's input", i));
    if (i < body->outputs.size())
      HEARTH_TRY(checkCompatible(body->operands[body->outputs[i]], bodyInput,
                                 "The output of WHILE's body", i));
    if (i < operation.outputs.size())
      HEARTH_TRY(checkCompatible(subgraph.operands[operation.outputs[i]],
                                 body->operands[body->outputs[i]], "WHILE's output", i));
  }
  return {};
}

Status prepareControlFlow(OperationContext& context) {
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    if (!context.hasOutput(i)) continue;
    if (!graph::isFullySpecified(*context.outputs[i].operand)) return needsRuntimeValue(context, 0);
    HEARTH_TRY(context.setOutputDimensions(i, context.outputs[i].operand->dimensions));
  }
  return {};
}

Status executeControlFlow(OperationContext& context) {
  return fail(ErrorCode::kUnsupported, "{} runs only in an interpreter.", context.describe());
}

}  // namespace

const OperationDefinition kIfOperation = {OperationType::kIf, validateIf, prepareControlFlow,
                                          executeControlFlow};
const OperationDefinition kWhileOperation = {OperationType::kWhile, validateWhile,
                                             prepareControlFlow, executeControlFlow};

}  // namespace hearth::ops
