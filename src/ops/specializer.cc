// SPDX-License-Identifier: Apache-2.0
#include "ops/specializer.h"

#include <algorithm>
#include <optional>

#include "ops/control_flow.h"

namespace hearth::ops {
namespace {

using graph::Lifetime;

// Values of shape arithmetic have a few elements; larger ones are computed when the model runs.
constexpr uint64_t kMaximumValueBytes = uint64_t{64} << 10;

// Whether running the operation again gives the same result and asks nobody but this library.
bool isPure(OperationType type) {
  switch (type) {
    case OperationType::kIf:
    case OperationType::kWhile:
    case OperationType::kCustom:
    case OperationType::kRandomMultinomial:
    case OperationType::kRandomUniform:
    case OperationType::kRandomStandardNormal:
    case OperationType::kMultinomial:
    case OperationType::kStringConstant:  // the handles of strings cannot be constants
      return false;
    default:
      return !graph::isDriverCode(type);
  }
}

bool isOfIntegers(OperandType type) {
  switch (type) {
    case OperandType::kInt32:
    case OperandType::kUint32:
    case OperandType::kBool:
    case OperandType::kTensorInt32:
    case OperandType::kTensorUint32:
    case OperandType::kTensorInt64:
    case OperandType::kTensorUint64:
    case OperandType::kTensorBool8:
      return true;
    default:
      return false;
  }
}

// Deeper control flow is left to the interpreter.
constexpr unsigned kDeepest = 8;

}  // namespace

Status Specializer::run(std::span<const graph::Dimensions> inputs) {
  const graph::Subgraph& main = subgraph_;
  if (inputs.size() != main.inputs.size())
    return fail(ErrorCode::kBadData, "There are shapes of {} inputs, the model has {}.",
                inputs.size(), main.inputs.size());
  for (size_t k = 0; k < main.operands.size(); ++k) {
    states_[k].dimensions = main.operands[k].dimensions;
    states_[k].isKnown = graph::isFullySpecified(main.operands[k]);
  }
  for (size_t i = 0; i < inputs.size(); ++i) HEARTH_TRY(setInput(i, inputs[i]));
  if (before_ != nullptr) beginToFollow();
  for (uint32_t o = 0; o < main.operations.size(); ++o)
    HEARTH_TRY_CONTEXT(step(o), "while inferring the shapes of operation {}", o);
  return {};
}

void Specializer::setFreeInputs(size_t first) {
  for (size_t i = first; i < subgraph_.inputs.size(); ++i)
    states_[subgraph_.inputs[i]].isFree = true;
}

std::vector<FollowedTensor> Specializer::followedOutputs() const {
  std::vector<FollowedTensor> outputs;
  for (const uint32_t output : subgraph_.outputs) outputs.push_back(followed_[output]);
  return outputs;
}

std::vector<Dimensions> Specializer::outputDimensions() const {
  std::vector<Dimensions> dimensions;
  for (const uint32_t output : subgraph_.outputs) dimensions.push_back(states_[output].dimensions);
  return dimensions;
}

std::vector<InferredOutput> Specializer::outputs() const {
  std::vector<InferredOutput> all;
  for (const uint32_t output : subgraph_.outputs) {
    const State& state = states_[output];
    InferredOutput& told = all.emplace_back(state.dimensions);
    if (!state.isDerived) continue;
    uint64_t bytes = graph::elementSize(subgraph_.operands[output]);
    for (const uint32_t dimension : state.dimensions) bytes *= dimension;
    const auto* const first = reinterpret_cast<const std::byte*>(state.value.data());
    told.value.emplace(first, first + bytes);
  }
  return all;
}

Status Specializer::checkOutputs() const {
  for (size_t i = 0; i < subgraph_.outputs.size(); ++i)
    if (!states_[subgraph_.outputs[i]].isKnown)
      return fail(ErrorCode::kUnsupported, "The shape of output {} depends on values.", i);
  return {};
}

void Specializer::finish() {
  graph::Subgraph& main = model_->subgraphs[index_];
  for (size_t k = 0; k < states_.size(); ++k) {
    graph::Operand& operand = main.operands[k];
    const State& state = states_[k];
    if (operand.isConstant() || !operand.hasValue() || operand.lifetime == Lifetime::kSubgraph)
      continue;
    // Scalars have no shape. The result of RANK is one.
    if (graph::isScalar(operand.type)) {
      if (state.isDerived && operand.lifetime == Lifetime::kTemporary)
        setConstant(&operand, state.value);
      continue;
    }
    if (!state.isKnown) continue;
    if (std::ranges::contains(state.dimensions, 0u)) continue;  // 0 means that it is unknown
    operand.dimensions = state.dimensions;
    operand.isRankZeroTensor = state.dimensions.empty();
    if (state.isDerived && operand.lifetime == Lifetime::kTemporary)
      setConstant(&operand, state.value);
  }
  for (const auto& [operation, constant] : replaced_) {
    graph::Operand operand = constant.operand;
    setConstant(&operand, constant.value);
    main.operations[operation].inputs[constant.input] = static_cast<uint32_t>(main.operands.size());
    main.operands.push_back(std::move(operand));
  }
  if (operations_.size() == main.operations.size()) return;
  std::vector<graph::Operation> kept;
  for (const uint32_t index : operations_) kept.push_back(std::move(main.operations[index]));
  main.operations = std::move(kept);
}

std::vector<uint32_t> Specializer::takeOperations() {
  operations_.insert(operations_.end(), nestedOperations_.begin(), nestedOperations_.end());
  return std::move(operations_);
}

Status Specializer::setInput(size_t position, const graph::Dimensions& given) {
  const graph::Operand& operand = subgraph_.operands[subgraph_.inputs[position]];
  if (graph::isScalar(operand.type)) return {};
  bool fits = operand.dimensions.empty() ? !operand.isRankZeroTensor || given.empty()
                                         : operand.dimensions.size() == given.size();
  for (size_t i = 0; fits && before_ == nullptr && i < operand.dimensions.size(); ++i)
    fits = operand.dimensions[i] == 0 || operand.dimensions[i] == given[i];
  if (!fits)
    return fail(ErrorCode::kBadData, "Input {} is {}, its shape cannot be {}.", position,
                graph::describe(operand), graph::describeDimensions(given));
  const bool isEmpty = std::ranges::contains(given, 0u);
  if (isEmpty && !allowsEmptyInputs_)
    return fail(ErrorCode::kUnsupported, "Input {} has no elements.", position);
  graph::Operand sized = operand;
  sized.dimensions = given;
  sized.isRankZeroTensor = given.empty();
  if (!isEmpty) HEARTH_TRY(graph::byteSize(sized));
  State& state = states_[subgraph_.inputs[position]];
  state.dimensions = given;
  state.isKnown = true;
  if (isEmpty) setEmpty(&state);
  return {};
}

Status Specializer::step(uint32_t index) {
  const graph::Operation& operation = subgraph_.operations[index];
  const OperationDefinition* const definition = findOperation(operation.type);
  if (definition == nullptr)
    return fail(ErrorCode::kUnsupported, "{} has no kernel.", graph::nameOf(operation.type));
  if (allowsOpenShapes_ && hasOpenInput(operation)) {
    operations_.push_back(index);
    return {};
  }
  if (operation.type == OperationType::kIf || operation.type == OperationType::kWhile) {
    const Status inferred = stepInto(index, operation);
    if (inferred || !allowsOpenShapes_ || inferred.error().code() != ErrorCode::kUnsupported)
      return inferred;
    leaveOpen(index);
    return {};
  }
  makeContext(original_, subgraph_, operation, &context_);
  bool areValuesKnown = true;
  bool isDerived =
      operation.type == OperationType::kShape || operation.type == OperationType::kRank;
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    State& state = states_[operation.inputs[i]];
    Tensor& input = context_.inputs[i];
    input.dimensions = state.dimensions;
    input.hasKnownShape = state.isKnown;
    if (state.isDerived) input.data = state.value.data();
    isDerived |= state.isDerived;
    areValuesKnown &= !input.isPresent || input.data != nullptr || state.isDerived;
  }
  if (operation.type == OperationType::kShape || operation.type == OperationType::kRank)
    areValuesKnown = true;  // they read no elements
  alignInputs();
  const Status prepared =
      before_ == nullptr ? prepare(*definition) : prepareFollowing(index, *definition);
  if (!prepared && allowsOpenShapes_ && isNeedsRuntimeValue(prepared.error())) {
    leaveOpen(index);
    return {};
  }
  HEARTH_TRY(prepared);
  for (size_t i = 0; i < operation.outputs.size(); ++i) {
    const Tensor& output = context_.outputs[i];
    if (!output.isPresent) continue;
    if (!output.hasKnownShape)
      return fail(ErrorCode::kUnsupported, "The shape of output {} of {} stays unknown.", i,
                  context_.describe());
    State& state = states_[operation.outputs[i]];
    state.dimensions = output.dimensions;
    state.isKnown = true;
    if (allowsEmptyInputs_ && std::ranges::contains(output.dimensions, 0u)) setEmpty(&state);
  }
  const bool isComputed = areValuesKnown && isPure(operation.type) && isWorthComputing(isDerived) &&
                          compute(*definition);
  // Outputs of the model are written by their operations in any case.
  const bool isOutput = std::ranges::any_of(operation.outputs, [&](uint32_t output) {
    return subgraph_.operands[output].lifetime == Lifetime::kSubgraphOutput;
  });
  if (!isComputed || isOutput) operations_.push_back(index);
  return {};
}

void Specializer::setEmpty(State* state) {
  state->isDerived = true;
  state->value.resize(1);
}

void Specializer::leaveOpen(uint32_t index) {
  openOperations_.push_back(static_cast<uint32_t>(operations_.size()));
  operations_.push_back(index);
}

bool Specializer::hasOpenInput(const graph::Operation& operation) const {
  return std::ranges::any_of(operation.inputs, [&](uint32_t input) {
    const graph::Operand& operand = subgraph_.operands[input];
    return operand.hasValue() && !operand.isConstant() && !graph::isScalar(operand.type) &&
           operand.lifetime != Lifetime::kSubgraph && !states_[input].isKnown;
  });
}

Status Specializer::prepare(const OperationDefinition& definition) {
  Status prepared = definition.prepare(context_);
  if (prepared || !allowsOpenShapes_ || keepsRanks_ ||
      prepared.error().code() != ErrorCode::kBadData)
    return prepared;
  // An output that had rank 0 by the file may have another one now.
  bool hasRankZero = false;
  for (Tensor& output : context_.outputs) {
    if (!output.operand->isRankZeroTensor) continue;
    graph::Operand& unranked = unranked_.emplace_back(*output.operand);
    unranked.isRankZeroTensor = false;
    output.operand = &unranked;
    hasRankZero = true;
  }
  return hasRankZero ? definition.prepare(context_) : prepared;
}

void Specializer::beginToFollow() {
  const graph::Subgraph& before = before_->subgraphs[index_];
  followed_.resize(states_.size());
  for (size_t k = 0; k < states_.size(); ++k) {
    const graph::Operand& operand = before.operands[k];
    FollowedTensor& tensor = followed_[k];
    tensor.before = operand.dimensions;
    tensor.isKnown = graph::isFullySpecified(operand) || !operand.hasValue();
    tensor.now = states_[k].isKnown ? states_[k].dimensions : tensor.before;
  }
  for (size_t i = 0; i < subgraph_.inputs.size(); ++i) {
    FollowedTensor& tensor = followed_[subgraph_.inputs[i]];
    if (!outerInputs_.empty()) tensor = outerInputs_[i];
    for (size_t d = 0; outerInputs_.empty() && d < tensor.before.size(); ++d)
      if (tensor.before[d] == 1 && tensor.now[d] != 1) tensor.parts |= uint64_t{1} << d;
  }
}

std::vector<FollowedTensor> Specializer::followed(const std::vector<uint32_t>& operands) const {
  std::vector<FollowedTensor> tensors;
  for (const uint32_t operand : operands) tensors.push_back(followed_[operand]);
  return tensors;
}

Status Specializer::prepareFollowing(uint32_t index, const OperationDefinition& definition) {
  const graph::Operation& operation = subgraph_.operations[index];
  HEARTH_TRY(followStates(operation));
  const std::vector<FollowedTensor> inputs = followed(operation.inputs);
  std::vector<FollowedTensor> outputs = followed(operation.outputs);
  HEARTH_ASSIGN(std::vector<FollowedConstant> constants,
                followConstants(context_, inputs, outputs));
  for (FollowedConstant& made : constants) {
    FollowedConstant& constant = replaced_.emplace_back(index, std::move(made)).second;
    Tensor& input = context_.inputs[constant.input];
    input.operand = &constant.operand;
    input.dimensions = constant.operand.dimensions;
    input.data = constant.value.data();
  }
  const bool isChanged = std::ranges::any_of(inputs, &FollowedTensor::isChanged);
  Status prepared = definition.prepare(context_);
  if (!prepared && isChanged)
    return std::unexpected(
        std::move(prepared.error()).addContext(describeChange(context_, inputs)));
  HEARTH_TRY(std::move(prepared));
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].now = context_.outputs[i].dimensions;
    if (outputs[i].isKnown && outputs[i].now.size() != outputs[i].before.size())
      return fail(ErrorCode::kUnsupported,
                  "{} cannot follow: {}, and its output \"{}\" would be {} in place of {}.",
                  context_.describe(), describeChange(context_, inputs),
                  context_.outputs[i].operand->name, graph::describeDimensions(outputs[i].now),
                  graph::describeDimensions(outputs[i].before));
  }
  HEARTH_TRY(followOutputs(context_, inputs, outputs));
  for (size_t i = 0; i < outputs.size(); ++i)
    followed_[operation.outputs[i]] = std::move(outputs[i]);
  return {};
}

Status Specializer::followStates(const graph::Operation& operation) {
  HEARTH_ASSIGN(const std::optional<size_t> batch, batchOfStates(context_));
  if (!batch) return {};
  const FollowedTensor& data = followed_[operation.inputs[0]];
  if (!data.isChanged() || data.now.size() <= *batch || data.before[*batch] == data.now[*batch])
    return {};
  for (size_t i = 1; i < operation.inputs.size(); ++i) {
    const uint32_t operand = operation.inputs[i];
    FollowedTensor& state = followed_[operand];
    if (!states_[operand].isFree || state.isChanged() || state.before.empty() ||
        state.before[0] != data.before[*batch])
      continue;
    state.now[0] = data.now[*batch];
    if (state.before[0] == 1) state.parts = 1;
    states_[operand].dimensions = state.now;
    context_.inputs[i].dimensions = state.now;
  }
  return {};
}

Status Specializer::stepInto(uint32_t index, const graph::Operation& operation) {
  const bool isIf = operation.type == OperationType::kIf;
  const size_t first = isIf ? kIfFirstInput : kWhileFirstInput;
  std::vector<Dimensions> inputs;
  for (size_t i = first; i < operation.inputs.size(); ++i) {
    const State& state = states_[operation.inputs[i]];
    if (!subgraph_.operands[operation.inputs[i]].hasValue() || !state.isKnown)
      return fail(ErrorCode::kUnsupported, "Input {} of {} is omitted.", i,
                  graph::nameOf(operation.type));
    inputs.push_back(state.dimensions);
  }
  std::vector<FollowedTensor> followedInputs;
  for (size_t i = first; before_ != nullptr && i < operation.inputs.size(); ++i)
    followedInputs.push_back(followed_[operation.inputs[i]]);
  std::vector<std::vector<Dimensions>> outputs;
  std::vector<std::vector<FollowedTensor>> followedOutputs;
  for (size_t i = isIf ? kIfThen : kWhileCondition; i < first; ++i) {
    const uint32_t target = subgraph_.operands[operation.inputs[i]].subgraphIndex;
    if (depth_ == kDeepest || (*allowance_)-- == 0)
      return fail(ErrorCode::kUnsupported, "The model has too much nested control flow.");
    // A subgraph with several callers has to suit them all.
    const bool isOnlyUse = isOnlyUse_ && isReferredToOnce(target);
    // What runs with open shapes may meet others in the next run of the same subgraph.
    const bool isFinal = isOnlyUse && !allowsOpenShapes_;
    if (before_ != nullptr && !isOnlyUse)
      return fail(ErrorCode::kUnsupported,
                  "Subgraph {} cannot follow: several operations refer to it.", target);
    Specializer nested(original_, before_, target, depth_ + 1, isOnlyUse, allowance_, model_);
    nested.setFollowedInputs(followedInputs);
    nested.allowsOpenShapes_ = allowsOpenShapes_;
    nested.keepsRanks_ = keepsRanks_;
    HEARTH_TRY_CONTEXT(nested.run(inputs), "in subgraph {}", target);
    outputs.push_back(nested.outputDimensions());
    if (before_ != nullptr) followedOutputs.push_back(nested.followedOutputs());
    if (!isFinal) continue;
    nested.finish();
    const std::vector<uint32_t> left = nested.takeOperations();
    nestedOperations_.insert(nestedOperations_.end(), left.begin(), left.end());
  }
  if (outputs.back() != (isIf ? outputs.front() : inputs))
    return fail(ErrorCode::kUnsupported, "The shapes of the outputs of {} depend on values.",
                graph::nameOf(operation.type));
  for (size_t i = 0; i < operation.outputs.size(); ++i) {
    states_[operation.outputs[i]].dimensions = outputs.back()[i];
    states_[operation.outputs[i]].isKnown = true;
  }
  for (size_t i = 0; before_ != nullptr && i < operation.outputs.size(); ++i) {
    const FollowedTensor& found = followedOutputs.back()[i];
    const FollowedTensor& other = isIf ? followedOutputs.front()[i] : followedInputs[i];
    if (found.parts != other.parts || found.isJoined != other.isJoined)
      return fail(ErrorCode::kUnsupported, "{} cannot follow: its subgraphs treat {} differently.",
                  graph::nameOf(operation.type), graph::describeDimensions(found.now));
    followed_[operation.outputs[i]] = found;
  }
  operations_.push_back(index);
  return {};
}

bool Specializer::isReferredToOnce(uint32_t target) const {
  size_t count = 0;
  for (const graph::Subgraph& subgraph : original_.subgraphs)
    count += static_cast<size_t>(
        std::ranges::count_if(subgraph.operands, [&](const graph::Operand& operand) {
          return operand.lifetime == Lifetime::kSubgraph && operand.subgraphIndex == target;
        }));
  return count == 1;
}

void Specializer::alignInputs() {
  aligned_.clear();
  for (Tensor& input : context_.inputs) {
    if (input.data == nullptr) continue;
    const uint64_t bytes = bytesOf(input);
    // Shapes, axes and such; weights are left to who runs the operation.
    if (bytes > kMaximumValueBytes) continue;
    input.data = aligned_.aligned(input.data, input.type(), bytes);
  }
}

uint64_t Specializer::bytesOf(const Tensor& tensor) {
  return tensor.elementCount() * graph::elementSize(*tensor.operand);
}

bool Specializer::isWorthComputing(bool isDerived) const {
  const bool areSmall = std::ranges::all_of(context_.outputs, [&](const Tensor& output) {
    return !output.isPresent ||
           (output.type() != OperandType::kTensorInt4 &&
            output.type() != OperandType::kTensorString && bytesOf(output) <= kMaximumValueBytes &&
            bytesOf(output) != 0 && (isDerived || isOfIntegers(output.type())));
  });
  return areSmall && std::ranges::all_of(context_.inputs, [&](const Tensor& input) {
           return isDerived || bytesOf(input) <= kMaximumValueBytes;
         });
}

bool Specializer::compute(const OperationDefinition& definition) {
  const graph::Operation& operation = *context_.operation;
  std::vector<std::vector<uint64_t>> values(context_.outputs.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!context_.outputs[i].isPresent) continue;
    values[i].resize((bytesOf(context_.outputs[i]) + 7) / 8);
    context_.outputs[i].data = values[i].data();
  }
  if (!definition.execute(context_)) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!context_.outputs[i].isPresent) continue;
    State& state = states_[operation.outputs[i]];
    state.isDerived = true;
    state.value = std::move(values[i]);
  }
  return true;
}

void Specializer::setConstant(graph::Operand* operand, const std::vector<uint64_t>& value) {
  uint64_t bytes = graph::elementSize(*operand);
  for (const uint32_t dimension : operand->dimensions) bytes *= dimension;
  std::vector<uint8_t>& all = model_->constantBytes;
  all.resize((all.size() + 7) / 8 * 8);
  operand->lifetime = Lifetime::kConstantCopy;
  operand->location = {0, all.size(), bytes};
  const auto* const first = reinterpret_cast<const uint8_t*>(value.data());
  all.insert(all.end(), first, first + bytes);
}

}  // namespace hearth::ops
