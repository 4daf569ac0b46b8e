// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/plan_builder.h"

#include <algorithm>

#include "drivers/cpu/kernels/half_conversion.h"
#include "drivers/cpu/kernels/pad_kernel.h"
#include "drivers/cpu/kernels/shared_kernel.h"
#include "drivers/cpu/plan/constant_folding.h"
#include "drivers/cpu/plan/nested_graph.h"
#include "drivers/cpu/platform/host_facts.h"
#include "ops/control_flow.h"

namespace hearth::cpu {
namespace {

// Deeper control flow is interpreted, as is a model that refers to its subgraphs more often: each
// reference is a plan of its own, and each level may double their number.
constexpr unsigned kDeepest = 8;
constexpr uint32_t kMostNested = 256;

}  // namespace

uint64_t tensorBytes(const ops::Tensor& tensor) {
  const uint64_t count = tensor.elementCount();
  if (tensor.type() == graph::OperandType::kTensorInt4) return (count + 1) / 2;
  return count * graph::elementSize(tensor.type());
}

PlanBuilder::PlanBuilder(const graph::Model& model, PackedWeights* weights,
                         std::set<uint32_t> referenceOnly, PreparedCustoms customs,
                         PlannedSubgraph planned)
    : model_(model),
      planned_(std::move(planned)),
      widened_(WidenedSubgraph::of(model.subgraphs[planned_.index])),
      subgraph_(widened_ != nullptr ? widened_->subgraph() : model.subgraphs[planned_.index]),
      weights_(weights),
      referenceOnly_(std::move(referenceOnly)),
      constants_(model, weights, planned_.index, widened_.get()),
      customs_(std::move(customs)),
      allowance_(kMostNested) {
  for (uint32_t g = 0; g < planned_.index; ++g)
    firstOperation_ += static_cast<uint32_t>(model.subgraphs[g].operations.size());
}

Result<KernelTraits> PlanBuilder::traits() {
  const Result<SelfTestResult>& tested = selfTest();
  if (!tested) return std::unexpected(tested.error());
  asksForTraits_ = true;
  return tested->traits;
}

ValueId PlanBuilder::newValue(Value value) {
  const auto id = static_cast<ValueId>(plan_.values.size());
  value.root = id;
  plan_.values.push_back(value);
  return id;
}

Status PlanBuilder::build() {
  plan_.widened = widened_;
  const size_t operandCount = subgraph_.operands.size();
  tensors_.resize(operandCount);
  valueOf_.resize(operandCount);
  padded_.resize(operandCount);
  consumers_.resize(operandCount);
  producers_.resize(operandCount, UINT32_MAX);
  plan_.values.reserve(operandCount);
  plan_.nodes.reserve(subgraph_.operations.size());
  for (size_t i = 0; i < operandCount; ++i) {
    const graph::Operand& operand = subgraph_.operands[i];
    ops::Tensor& tensor = tensors_[i];
    tensor.operand = &operand;
    tensor.dimensions = operand.dimensions;
    tensor.isPresent = operand.hasValue();
    tensor.hasKnownShape = graph::isFullySpecified(operand);
  }
  for (size_t i = 0; i < subgraph_.inputs.size(); ++i) {
    const uint32_t index = subgraph_.inputs[i];
    if (!planned_.inputs.empty()) setShape(index, planned_.inputs[i]);
    if (!tensors_[index].hasKnownShape)
      return fail(ErrorCode::kUnsupported, "The shape of input {} is known only at run time.", i);
    Value value;
    value.place = Value::Place::kInput;
    value.index = static_cast<uint32_t>(i);
    value.bytes = tensorBytes(tensors_[index]);
    value.name = subgraph_.operands[index].name;
    valueOf_[index] = newValue(value);
  }
  for (uint32_t o = 0; o < subgraph_.operations.size(); ++o)
    for (uint32_t index : subgraph_.operations[o].inputs) {
      consumers_[index].push_back(o);
      if (isWide(index)) consumers_[widened_->narrow(index)].push_back(o);
    }
  for (uint32_t o = 0; o < subgraph_.operations.size(); ++o)
    for (uint32_t index : subgraph_.operations[o].outputs) producers_[index] = o;
  kernels_.resize(subgraph_.operations.size());
  for (operation_ = 0; operation_ < subgraph_.operations.size(); ++operation_) {
    const graph::Operation& operation = subgraph_.operations[operation_];
    widenConstants(operation);
    HEARTH_TRY(infer(operation));
    convertInputs(operation);
    HEARTH_TRY_CONTEXT(lower(), "while planning operation {} ({})", operation_,
                       graph::nameOf(operation.type));
    roundOutputs(operation);
  }
  return {};
}

// Both forms of a tensor have one shape.
void PlanBuilder::setShape(uint32_t operand, const graph::Dimensions& dimensions) {
  const auto set = [&](uint32_t index) {
    tensors_[index].dimensions = dimensions;
    tensors_[index].hasKnownShape = true;
  };
  set(operand);
  if (widened_ == nullptr) return;
  if (const uint32_t other = widened_->otherForm(operand); other != UINT32_MAX) set(other);
}

// Makes the wide operands of constants that the operation reads constants themselves.
void PlanBuilder::widenConstants(const graph::Operation& operation) {
  if (widened_ == nullptr) return;
  for (const uint32_t wide : operation.inputs) {
    if (!isWide(wide) || constants_.isWeight(wide)) continue;
    const uint32_t half = widened_->narrow(wide);
    if (!constants_.isWeight(half)) continue;
    ops::OperationContext context;
    context.model = &model_;
    context.operation = &widened_->conversion(wide);
    context.inputs = {tensors_[half]};
    context.outputs = {tensors_[wide]};
    if (constants_.hasElements(half))
      context.inputs[0].data = const_cast<uint8_t*>(plan_.values[read(half)].constant);
    constants_.setConverted(wide, context);
  }
}

// Adds nodes that convert what the operation reads in another form than it was written.
void PlanBuilder::convertInputs(const graph::Operation& operation) {
  if (widened_ == nullptr || takenOver_.contains(operation_)) return;
  for (const uint32_t index : operation.inputs) {
    const uint32_t other = widened_->otherForm(index);
    if (other != UINT32_MAX && !isWritten(index) && isWritten(other)) addConversion(other, index);
  }
}

// Rounds wide results, and converts those that are outputs of the graph.
void PlanBuilder::roundOutputs(const graph::Operation& operation) {
  if (widened_ == nullptr) return;
  // What an earlier operation wrote instead of this one was computed by that.
  const bool isExact = WidenedSubgraph::isExact(operation.type) && !takenOver_.contains(operation_);
  for (const uint32_t index : operation.outputs) {
    if (!isWide(index) || !isWritten(index)) continue;
    if (!isExact && !consumers_[index].empty()) addConversion(index, index);
    if (const uint32_t half = widened_->narrow(index); isGraphOutput(half))
      addConversion(index, half);
  }
}

void PlanBuilder::addConversion(uint32_t from, uint32_t to) {
  HalfConversion conversion;
  using Kind = HalfConversion::Kind;
  conversion.kind = from == to ? Kind::kRound : isWide(to) ? Kind::kWiden : Kind::kNarrow;
  conversion.source = read(from);
  conversion.destination = write(to);
  conversion.count = tensors_[from].elementCount();
  add("own", {conversion.source}, {conversion.destination}).create = [conversion] {
    return makeHalfConversion(conversion);
  };
}

Status PlanBuilder::infer(const graph::Operation& operation) {
  const ops::OperationDefinition* definition = ops::findOperation(operation.type);
  if (definition == nullptr)
    return fail(ErrorCode::kUnsupported, "Operation {} is {}, which has no kernel.", operation_,
                graph::nameOf(operation.type));
  nested_.clear();
  if (operation.type == graph::OperationType::kIf || operation.type == graph::OperationType::kWhile)
    return inferNested(operation);
  ops::makeContext(model_, subgraph_, operation, &context_);
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    const ops::Tensor& known = tensors_[operation.inputs[i]];
    context_.inputs[i].dimensions = known.dimensions;
    context_.inputs[i].hasKnownShape = known.hasKnownShape;
    // Kernels read constants element by element, so these have to be aligned.
    if (context_.inputs[i].data != nullptr ||
        (context_.inputs[i].isPresent && constants_.hasElements(operation.inputs[i]))) {
      const ValueId id = read(operation.inputs[i]);
      context_.inputs[i].data = const_cast<uint8_t*>(plan_.values[id].constant);
    }
  }
  if (const auto known = customs_.find(operation_); known != customs_.end())
    context_.custom = known->second;
  HEARTH_TRY_CONTEXT(definition->prepare(context_), "while inferring the shapes of operation {}",
                     operation_);
  if (context_.custom != nullptr) customs_[operation_] = context_.custom;
  for (size_t i = 0; i < operation.outputs.size(); ++i) {
    ops::Tensor& output = context_.outputs[i];
    if (!output.isPresent) continue;
    if (!output.hasKnownShape)
      return fail(ErrorCode::kUnsupported, "The shape of output {} of {} stays unknown.", i,
                  context_.describe());
    setShape(operation.outputs[i], output.dimensions);
  }
  return {};
}

// Plans the subgraphs of IF or WHILE: their outputs are those of the operation.
Status PlanBuilder::inferNested(const graph::Operation& operation) {
  const bool isIf = operation.type == graph::OperationType::kIf;
  const size_t first = isIf ? ops::kIfFirstInput : ops::kWhileFirstInput;
  ops::makeContext(model_, subgraph_, operation, &context_);
  std::vector<graph::Dimensions> inputs;
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    const ops::Tensor& known = tensors_[operation.inputs[i]];
    context_.inputs[i].dimensions = known.dimensions;
    context_.inputs[i].hasKnownShape = known.hasKnownShape;
    if (i < first) continue;
    if (!known.isPresent || known.elementCount() == 0)
      return fail(ErrorCode::kUnsupported, "Input {} of {} has no elements.", i,
                  context_.describe());
    inputs.push_back(known.dimensions);
  }
  if (isIf && tensors_[operation.inputs[ops::kIfCondition]].elementCount() != 1)
    return fail(ErrorCode::kBadData, "The condition of IF has not exactly one element.");
  uint32_t* const allowance = planned_.allowance != nullptr ? planned_.allowance : &allowance_;
  for (size_t i = isIf ? ops::kIfThen : ops::kWhileCondition; i < first; ++i) {
    if (planned_.depth == kDeepest || (*allowance)-- == 0)
      return fail(ErrorCode::kUnsupported, "The model has too much nested control flow.");
    HEARTH_ASSIGN(auto nested,
                  NestedGraph::create(model_,
                                      {operand(operation.inputs[i]).subgraphIndex, inputs,
                                       planned_.depth + 1, allowance, planned_.maxArenaBytes},
                                      weights_));
    nested_.push_back(std::move(nested));
  }
  if (!isIf && nested_[0]->outputBytes() != std::vector<uint64_t>{1})
    return fail(ErrorCode::kBadData, "The condition of WHILE has not exactly one element.");
  const std::vector<graph::Dimensions>& outputs = nested_.back()->outputDimensions();
  // One plan is for one shape of each tensor.
  if (outputs != (isIf ? nested_[0]->outputDimensions() : inputs))
    return fail(ErrorCode::kUnsupported,
                "The shapes of the outputs of {} are known only at run time.", context_.describe());
  for (size_t i = 0; i < operation.outputs.size(); ++i) {
    ops::Tensor& output = context_.outputs[i];
    if (!output.isPresent) continue;
    HEARTH_TRY(context_.setOutputDimensions(i, outputs[i]));
    setShape(operation.outputs[i], output.dimensions);
  }
  return {};
}

bool PlanBuilder::canTakeOver(uint32_t index) {
  const graph::Operation& later = operation(index);
  if (isReferenceOnly(index) || later.outputs.size() != 1) return false;
  const uint32_t result = context_.operation->outputs[0];
  if (isWide(result)) {
    const uint32_t half = widened_->narrow(result);
    if (!WidenedSubgraph::isClamp(later.type) || later.inputs[0] != result || isGraphOutput(half) ||
        consumers_[half].size() != consumers_[result].size())
      return false;
  }
  setShape(later.outputs[0], tensors_[result].dimensions);
  return true;
}

bool PlanBuilder::hasNode(uint32_t operation) const {
  return std::ranges::binary_search(plan_.nodes, operation, {}, &Node::operation);
}

void PlanBuilder::withdraw(const std::vector<uint32_t>& operations) {
  withdrawn_.insert(operations.begin(), operations.end());
  std::erase_if(plan_.nodes, [&](const Node& node) { return isWithdrawn(node.operation); });
  for (const uint32_t operation : operations) kernels_[operation] = {"none", ""};
}

bool PlanBuilder::isUnread(uint32_t operand, const std::vector<uint32_t>& replaced) const {
  return !isGraphOutput(operand) && !kept_.contains(operand) &&
         std::ranges::all_of(consumers_[operand], [&](uint32_t reader) {
           return reader == operation_ || isWithdrawn(reader) ||
                  std::ranges::find(replaced, reader) != replaced.end();
         });
}

Status PlanBuilder::lower() {
  if (takenOver_.contains(operation_)) {
    kernels_[operation_] = {"none", ""};
    return {};
  }
  const size_t before = plan_.nodes.size();
  declined_ = "no faster kernel takes its types, shapes and quantisation";
  bool done = foldConstants(this);
  // XNNPACK asserts that tensors have elements.
  bool hasEmptyTensor = false;
  for (const auto* list : {&context_.inputs, &context_.outputs})
    for (const ops::Tensor& tensor : *list)
      hasEmptyTensor |= tensor.isPresent && tensor.elementCount() == 0 &&
                        tensor.operand->lifetime != graph::Lifetime::kSubgraph;
  const Lowering lowering = findLowering(context_.operation->type);
  if (lowering == nullptr) {
    decline("there is no faster kernel for this operation");
  } else if (hasEmptyTensor) {
    decline("a tensor has no elements");
  } else if (referenceOnly_.contains(operation_)) {
    decline("XNNPACK refuses it");
  } else if (!done) {
    HEARTH_ASSIGN(done, lowering(this));
  }
  if (!done && !nested_.empty())
    return fail(ErrorCode::kUnsupported, "{} decides at run time what is computed.",
                context_.describe());
  if (!done) addOperation("reference", context_).whySlow = std::move(declined_);
  if (plan_.nodes.size() == before)
    kernels_[operation_] = {"none", ""};
  else
    kernels_[operation_] = {plan_.nodes.back().kernel, plan_.nodes.back().whySlow};
  return {};
}

PlanBuilder::Arguments PlanBuilder::addArguments(const char* kernel,
                                                 const ops::OperationContext& context) {
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  OperationArguments arguments;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const ops::Tensor& tensor = context.inputs[i];
    arguments.inputs.push_back(OperationArguments::kNone);
    if (!tensor.isPresent || tensor.data != nullptr) continue;
    if (tensor.operand->lifetime == graph::Lifetime::kSubgraph) continue;
    arguments.inputs.back() = read(context.operation->inputs[i]);
    inputs.push_back(arguments.inputs.back());
  }
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    arguments.outputs.push_back(OperationArguments::kNone);
    if (!context.outputs[i].isPresent) continue;
    arguments.outputs.back() = write(context.operation->outputs[i]);
    outputs.push_back(arguments.outputs.back());
  }
  return {add(kernel, std::move(inputs), std::move(outputs)), std::move(arguments)};
}

Node& PlanBuilder::addOperation(const char* kernel, const ops::OperationContext& context) {
  const auto [node, arguments] = addArguments(kernel, context);
  node.create = [context, arguments = arguments]() {
    return makeSharedKernel(context, arguments);
  };
  return node;
}

ValueId PlanBuilder::read(uint32_t index) {
  const graph::Operand& operand = subgraph_.operands[index];
  if (padded_[index] && !valueOf_[index]) {
    // This reader cannot pad by itself, so the padding becomes a node of its own.
    materialize(index);
  }
  if (valueOf_[index]) return *valueOf_[index];
  // Operands that are not constants have been written before, so this one is a constant.
  Value value;
  value.place = Value::Place::kConstant;
  value.index = isWide(index) ? widened_->narrow(index) : index;
  value.bytes = tensorBytes(tensors_[index]);
  value.name = operand.name;
  value.constant = constants_.elements(index);
  valueOf_[index] = newValue(value);
  return *valueOf_[index];
}

void PlanBuilder::materialize(uint32_t index) {
  const PaddedView view = *padded_[index];
  const graph::Dimensions& dimensions = tensors_[view.source].dimensions;
  SpatialPad pad;
  pad.source = read(view.source);
  pad.destination = write(index);
  pad.batch = dimensions[0];
  pad.height = dimensions[1];
  pad.width = dimensions[2];
  pad.pixelBytes = dimensions[3] * graph::elementSize(tensors_[view.source].type());
  pad.top = view.top;
  pad.bottom = view.bottom;
  pad.left = view.left;
  pad.right = view.right;
  pad.fillByte = view.fillByte;
  add("own", {pad.source}, {pad.destination}).create = [pad] {
    return makePadKernel(pad);
  };
}

ValueId PlanBuilder::write(uint32_t index) {
  if (valueOf_[index]) return *valueOf_[index];
  const graph::Operand& operand = subgraph_.operands[index];
  Value value;
  value.bytes = tensorBytes(tensors_[index]);
  value.name = operand.name;
  if (operand.lifetime == graph::Lifetime::kSubgraphOutput) {
    value.place = Value::Place::kOutput;
    const auto it = std::find(subgraph_.outputs.begin(), subgraph_.outputs.end(), index);
    value.index = static_cast<uint32_t>(it - subgraph_.outputs.begin());
  }
  valueOf_[index] = newValue(value);
  return *valueOf_[index];
}

ValueId PlanBuilder::temporary(uint64_t bytes) {
  Value value;
  value.bytes = bytes;
  if (!context_.outputs.empty()) value.name = context_.outputs.front().operand->name;
  return newValue(value);
}

bool PlanBuilder::alias(uint32_t output, uint32_t input) {
  const ValueId source = read(input);
  const auto [root, offset] = plan_.resolve(source);
  const bool outputIsFixed = isGraphOutput(output);
  if (!outputIsFixed) {
    const ValueId id = write(output);
    plan_.values[id].root = source;
    return true;
  }
  // The nodes that write `input` now write to the memory of the graph output.
  if (plan_.values[root].place != Value::Place::kArena || offset != 0) return false;
  const ValueId id = write(output);
  if (plan_.values[id].bytes != plan_.values[root].bytes) return false;
  plan_.values[root].root = id;
  reserveWriteSlack(id, plan_.values[root].writeSlack);
  return true;
}

void PlanBuilder::reserveWriteSlack(ValueId value, uint64_t bytes) {
  const ValueId root = plan_.resolve(value).root;
  plan_.values[root].writeSlack = std::max(plan_.values[root].writeSlack, bytes);
  plan_.values[value].writeSlack = plan_.values[root].writeSlack;
}

Node& PlanBuilder::add(const char* kernel, std::vector<ValueId> inputs,
                       std::vector<ValueId> outputs) {
  Node node;
  node.operation = operation_;
  const graph::OperationTypeInfo* info =
      graph::findOperationType(subgraph_.operations[operation_].type);
  node.name = info != nullptr ? info->name : "";
  node.kernel = kernel;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  plan_.nodes.push_back(std::move(node));
  return plan_.nodes.back();
}

void PlanBuilder::setPaddedView(uint32_t operand, PaddedView view) {
  padded_[operand] = view;
}

std::optional<PlanBuilder::PaddedView> PlanBuilder::paddedView(uint32_t operand) const {
  return padded_[operand];
}

}  // namespace hearth::cpu
