// SPDX-License-Identifier: Apache-2.0
#include "ops/interpreter.h"

#include <cstring>

#include "base/format.h"
#include "memory/budget.h"
#include "ops/control_flow.h"
#include "ops/interpreter_state.h"

namespace hearth::ops {
namespace {

// Values of 0 bytes point here: a kernel never gets null for an argument that is present.
alignas(64) uint8_t emptyValue[64];

uint64_t byteSize(const graph::Operand& operand, const Dimensions& dimensions) {
  uint64_t count = 1;
  for (uint32_t dimension : dimensions) count *= dimension;
  if (operand.type == OperandType::kTensorInt4) return (count + 1) / 2;
  return count * graph::elementSize(operand);
}

// byteSize() of dimensions that have not been checked yet.
Result<uint64_t> checkedByteSize(const graph::Operand& operand, const Dimensions& dimensions) {
  uint64_t bytes = std::max<uint64_t>(graph::elementSize(operand), 1);
  for (uint32_t dimension : dimensions)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes) ||
        bytes > (uint64_t{1} << 62))
      return fail(ErrorCode::kBadData, "The operand {} with dimensions {} is too large.",
                  graph::describe(operand), graph::describeDimensions(dimensions));
  return byteSize(operand, dimensions);
}

bool fits(const Dimensions& dimensions, const Dimensions& declared) {
  if (declared.empty()) return true;
  if (declared.size() != dimensions.size()) return false;
  for (size_t i = 0; i < declared.size(); ++i)
    if (declared[i] != 0 && declared[i] != dimensions[i]) return false;
  return true;
}

Status checkDimensions(const graph::Operand& operand, const Dimensions& dimensions) {
  if (fits(dimensions, operand.dimensions)) return {};
  return fail(ErrorCode::kBadData, "The operand {} gets a value of dimensions {}.",
              graph::describe(operand), graph::describeDimensions(dimensions));
}

}  // namespace

class InterpreterRun::StateLease {
 public:
  StateLease(InterpreterRun& run, size_t subgraph)
      : run_(run), subgraph_(subgraph), state_(run.interpreter_.takeState(subgraph)) {}
  ~StateLease() {
    for (const Value& value : state_->values) run_.liveBytes_ -= value.ownedBytes;
    run_.interpreter_.giveState(subgraph_, std::move(state_));
  }
  StateLease(const StateLease&) = delete;
  StateLease& operator=(const StateLease&) = delete;

  State* get() { return state_.get(); }
  State* operator->() { return state_.get(); }

 private:
  InterpreterRun& run_;
  size_t subgraph_;
  std::unique_ptr<State> state_;
};

RunResult Interpreter::run(const std::vector<RunArgument>& inputs,
                           const std::vector<RunArgument>& outputs,
                           const RunOptions& options) const {
  return InterpreterRun(*this, options).run(inputs, outputs);
}

RunResult InterpreterRun::run(const std::vector<RunArgument>& inputs,
                              const std::vector<RunArgument>& outputs) {
  const graph::Subgraph& main = model_.main();
  RunResult result;
  if (inputs.size() != main.inputs.size() || outputs.size() != main.outputs.size()) {
    result.status =
        fail(ErrorCode::kBadData, "The run has {} inputs and {} outputs, the model has {} and {}.",
             inputs.size(), outputs.size(), main.inputs.size(), main.outputs.size());
    return result;
  }
  StateLease state(*this, 0);
  bool hasOmissions = false;
  for (size_t i = 0; i < inputs.size() && result.status; ++i) {
    const uint32_t operand = main.inputs[i];
    result.status = bindMainInput(main.operands[operand], inputs[i], &state->values[operand]);
    if (!result.status)
      result.status = std::unexpected(
          std::move(result.status.error()).addContext(base::formatText("input {}", i)));
    hasOmissions |= !inputs[i].isPresent;
  }
  if (result.status && hasOmissions) result.status = checkOmissions(0, *state.get());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].isPresent) state->values[main.outputs[i]].destination = &outputs[i];
  if (result.status) result.status = runSubgraph(0, state.get());
  if (!result.status) return result;

  for (size_t i = 0; i < outputs.size(); ++i) {
    Value& value = state->values[main.outputs[i]];
    if (!value.isSufficient && options_.room != nullptr && result.status)
      result.status = moveToRoom(i, value);
    else if (!value.isSufficient && result.status)
      result.status = fail(ErrorCode::kOutputInsufficientSize,
                           "Output {} has {} bytes, its value of dimensions {} needs more.", i,
                           outputs[i].length, graph::describeDimensions(value.dimensions));
    result.outputShapes.push_back({value.dimensions, value.isSufficient});
  }
  return result;
}

Status InterpreterRun::moveToRoom(size_t output, const Value& value) {
  const graph::Operand& operand = model_.main().operands[model_.main().outputs[output]];
  const uint64_t bytes = byteSize(operand, value.dimensions);
  HEARTH_ASSIGN(void* const memory, options_.room->make(output, bytes));
  std::memcpy(memory, value.data, bytes);
  return {};
}

Status InterpreterRun::bindMainInput(const graph::Operand& operand, const RunArgument& argument,
                                     Value* value) {
  value->isPresent = argument.isPresent;
  if (!argument.isPresent) return {};
  HEARTH_TRY(checkDimensions(operand, argument.dimensions));
  HEARTH_ASSIGN(const uint64_t bytes, checkedByteSize(operand, argument.dimensions));
  if (argument.length < bytes)
    return fail(ErrorCode::kBadData, "The argument for {} has {} bytes, it needs {}.",
                graph::describe(operand), argument.length, bytes);
  value->dimensions = argument.dimensions;
  if (bytes == 0) {
    value->data = emptyValue;
  } else if (isAligned(argument.data, operand.type)) {
    value->data = static_cast<uint8_t*>(argument.data);
  } else {
    HEARTH_TRY(allocate(operand, bytes, value));
    std::memcpy(value->data, argument.data, bytes);
  }
  return {};
}

Status InterpreterRun::bindInputs(size_t subgraphIndex, State* state,
                                  const std::vector<const Value*>& inputs) {
  const graph::Subgraph& subgraph = model_.subgraphs[subgraphIndex];
  bool hasOmissions = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value& value = state->values[subgraph.inputs[i]];
    value.isPresent = inputs[i]->isPresent;
    hasOmissions |= !value.isPresent;
    if (!value.isPresent) continue;
    HEARTH_TRY(checkDimensions(subgraph.operands[subgraph.inputs[i]], inputs[i]->dimensions));
    value.dimensions = inputs[i]->dimensions;
    value.data = inputs[i]->data;
  }
  return hasOmissions ? checkOmissions(subgraphIndex, *state) : Status();
}

// Checks the model again without the inputs that are omitted at run time: validate() has not seen
// that form of it.
Status InterpreterRun::checkOmissions(size_t subgraphIndex, const State& state) const {
  graph::Subgraph subgraph;
  subgraph.operands = model_.subgraphs[subgraphIndex].operands;
  for (uint32_t index : model_.subgraphs[subgraphIndex].inputs)
    if (!state.values[index].isPresent)
      subgraph.operands[index].lifetime = graph::Lifetime::kNoValue;
  for (size_t i = 0; i < model_.subgraphs[subgraphIndex].operations.size(); ++i) {
    const graph::Operation& operation = model_.subgraphs[subgraphIndex].operations[i];
    bool isConcerned = false;
    for (uint32_t index : operation.inputs)
      isConcerned |= subgraph.operands[index].lifetime == graph::Lifetime::kNoValue;
    if (!isConcerned) continue;
    HEARTH_TRY_CONTEXT(interpreter_.plans_[subgraphIndex].steps[i].definition->validate(
                           model_, subgraph, operation),
                       "with the inputs that this run omits");
  }
  return {};
}

Status InterpreterRun::runSubgraph(size_t subgraphIndex, State* state) {
  const graph::Subgraph& subgraph = model_.subgraphs[subgraphIndex];
  const Interpreter::SubgraphPlan& plan = interpreter_.plans_[subgraphIndex];
  for (size_t i = 0;; ++i) {
    if (options_.deadline.hasPassed())
      return fail(ErrorCode::kMissedDeadlineTransient,
                  "The deadline has passed before operation {} of {}.", i, plan.steps.size());
    if (i == plan.steps.size()) return {};
    const graph::Operation& operation = subgraph.operations[i];
    Status status;
    if (operation.type == OperationType::kIf)
      status = runIf(subgraph, operation, state);
    else if (operation.type == OperationType::kWhile)
      status = runWhile(subgraph, operation, state);
    else
      status = runStep(subgraph, i, plan.steps[i], state);
    if (!status)
      return std::unexpected(
          std::move(status.error())
              .addContext(base::formatText("while running operation {} ({}) of "
                                           "subgraph {}",
                                           i, graph::nameOf(operation.type), subgraphIndex)));
    for (uint32_t index : plan.steps[i].lastUses) release(&state->values[index]);
  }
}

Status InterpreterRun::runStep(const graph::Subgraph& subgraph, size_t index,
                               const Interpreter::Step& step, State* state) {
  const graph::Operation& operation = subgraph.operations[index];
  OperationContext& context = state->contexts[index];
  for (size_t k = 0; k < operation.inputs.size(); ++k) {
    const Value& value = state->values[operation.inputs[k]];
    Tensor& tensor = context.inputs[k];
    tensor.isPresent = value.isPresent;
    tensor.data = value.data;
    tensor.dimensions = value.dimensions;
    tensor.hasKnownShape = value.isPresent;
  }
  for (Tensor& tensor : context.outputs) {
    tensor.isPresent = tensor.operand->hasValue();
    tensor.hasKnownShape = false;
    tensor.dimensions = tensor.operand->dimensions;
    tensor.data = nullptr;
  }
  HEARTH_TRY(step.definition->prepare(context));
  for (size_t k = 0; k < operation.outputs.size(); ++k) {
    Tensor& tensor = context.outputs[k];
    if (!tensor.isPresent) continue;
    if (!tensor.hasKnownShape)
      return fail(ErrorCode::kOpFailed, "{} leaves the shape of its output {} open.",
                  context.describe(), k);
    Value& value = state->values[operation.outputs[k]];
    value.isPresent = true;
    value.dimensions = tensor.dimensions;
    const uint64_t bytes = byteSize(*tensor.operand, tensor.dimensions);
    const RunArgument* destination = value.destination;
    if (destination != nullptr && bytes <= destination->length && bytes != 0 &&
        isAligned(destination->data, tensor.type()))
      value.data = static_cast<uint8_t*>(destination->data);
    else
      HEARTH_TRY(allocate(*tensor.operand, bytes, &value));
    tensor.data = value.data;
  }
  HEARTH_TRY(step.referenceKernel != nullptr ? step.referenceKernel(context)
                                             : step.definition->execute(context));
  for (size_t k = 0; k < operation.outputs.size(); ++k)
    if (context.outputs[k].isPresent)
      HEARTH_TRY(finishOutput(*context.outputs[k].operand, &state->values[operation.outputs[k]]));
  return {};
}

// Copies a value that was not computed in place to the caller's memory.
Status InterpreterRun::finishOutput(const graph::Operand& operand, Value* value) {
  if (value->destination == nullptr) return {};
  const RunArgument& destination = *value->destination;
  if (!fits(value->dimensions, destination.dimensions))
    return fail(ErrorCode::kOpFailed, "The output {} has the dimensions {}, its argument says {}.",
                graph::describe(operand), graph::describeDimensions(value->dimensions),
                graph::describeDimensions(destination.dimensions));
  const uint64_t bytes = byteSize(operand, value->dimensions);
  value->isSufficient = bytes <= destination.length;
  if (value->isSufficient && bytes != 0 && value->data != destination.data)
    std::memcpy(destination.data, value->data, bytes);
  return {};
}

Status InterpreterRun::allocate(const graph::Operand& operand, uint64_t bytes, Value* value) {
  release(value);
  value->isPresent = true;
  if (bytes == 0) {
    value->data = emptyValue;
    return {};
  }
  const uint64_t limit = interpreter_.options_.maxActivationBytes;
  if (limit != 0 && (bytes > limit || liveBytes_ > limit - bytes))
    return fail(ErrorCode::kOutOfMemory,
                "The tensor {} needs {} bytes; with it the activations take {} bytes, the limit is "
                "{}.",
                graph::describe(operand), bytes, liveBytes_ + bytes, limit);
  HEARTH_TRY(takeRoom(liveBytes_ + bytes));
  constexpr uint64_t kAlignment = 64;
  const uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  value->owned.reset(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, rounded)));
  if (value->owned == nullptr)
    return fail(ErrorCode::kOutOfMemory, "There is no memory for the {} bytes of the tensor {}.",
                bytes, graph::describe(operand));
  value->data = value->owned.get();
  value->ownedBytes = bytes;
  liveBytes_ += bytes;
  return {};
}

Status InterpreterRun::takeRoom(uint64_t bytes) {
  if (bytes <= roomBytes_) return {};
  HEARTH_ASSIGN(std::shared_ptr<void> room, memory::reserveRoom(bytes - roomBytes_));
  if (room != nullptr) rooms_.push_back(std::move(room));
  roomBytes_ = bytes;
  return {};
}

void InterpreterRun::release(Value* value) {
  liveBytes_ -= value->ownedBytes;
  value->owned.reset();
  value->ownedBytes = 0;
  value->data = nullptr;
}

Status InterpreterRun::handOut(const graph::Operand& operand, Value from, Value* to) {
  if (!operand.hasValue()) {
    release(&from);
    return {};
  }
  HEARTH_TRY(checkDimensions(operand, from.dimensions));
  to->isPresent = true;
  to->dimensions = from.dimensions;
  const uint64_t bytes = byteSize(operand, from.dimensions);
  if (from.owned != nullptr) {
    to->data = from.data;
    to->owned = std::move(from.owned);
    to->ownedBytes = from.ownedBytes;
  } else {
    HEARTH_TRY(allocate(operand, bytes, to));
    if (bytes != 0) std::memcpy(to->data, from.data, bytes);
  }
  return finishOutput(operand, to);
}

Status InterpreterRun::runIf(const graph::Subgraph& subgraph, const graph::Operation& operation,
                             State* state) {
  const Value& condition = state->values[operation.inputs[kIfCondition]];
  if (!condition.isPresent ||
      byteSize(subgraph.operands[operation.inputs[kIfCondition]], condition.dimensions) != 1)
    return fail(ErrorCode::kBadData, "The condition of IF has not exactly one element.");
  const size_t branch = *condition.data != 0 ? kIfThen : kIfElse;
  const size_t target = subgraph.operands[operation.inputs[branch]].subgraphIndex;
  std::vector<const Value*> inputs;
  for (size_t i = kIfFirstInput; i < operation.inputs.size(); ++i)
    inputs.push_back(&state->values[operation.inputs[i]]);
  StateLease nested(*this, target);
  HEARTH_TRY(bindInputs(target, nested.get(), inputs));
  HEARTH_TRY(runSubgraph(target, nested.get()));
  for (size_t i = 0; i < operation.outputs.size(); ++i) {
    Value& from = nested->values[model_.subgraphs[target].outputs[i]];
    HEARTH_TRY(handOut(subgraph.operands[operation.outputs[i]], from.take(),
                       &state->values[operation.outputs[i]]));
  }
  return {};
}

Status InterpreterRun::runWhile(const graph::Subgraph& subgraph, const graph::Operation& operation,
                                State* state) {
  const size_t condition = subgraph.operands[operation.inputs[kWhileCondition]].subgraphIndex;
  const size_t body = subgraph.operands[operation.inputs[kWhileBody]].subgraphIndex;
  const graph::Subgraph& conditionGraph = model_.subgraphs[condition];
  const graph::Subgraph& bodyGraph = model_.subgraphs[body];
  const size_t count = operation.inputs.size() - kWhileFirstInput;
  const auto loopDeadline = base::Deadline::after(options_.loopTimeoutNanoseconds);

  // The values that the loop carries; until the body has run once, `inputs` points to the outer
  // ones.
  std::vector<Value> carried(bodyGraph.outputs.size());
  std::vector<const Value*> inputs;
  for (size_t i = 0; i < count; ++i)
    inputs.push_back(&state->values[operation.inputs[kWhileFirstInput + i]]);

  Status status;
  while (true) {
    bool goesOn = false;
    {
      StateLease nested(*this, condition);
      status = bindInputs(condition, nested.get(), inputs);
      if (status) status = runSubgraph(condition, nested.get());
      if (!status) break;
      const Value& value = nested->values[conditionGraph.outputs[0]];
      if (byteSize(conditionGraph.operands[conditionGraph.outputs[0]], value.dimensions) != 1) {
        status = fail(ErrorCode::kBadData, "The condition of WHILE has not exactly one element.");
        break;
      }
      goesOn = *value.data != 0;
    }
    if (!goesOn) break;
    if (loopDeadline.hasPassed()) {
      status = fail(ErrorCode::kMissedDeadlineTransient, "WHILE runs for more than {} ms.",
                    options_.loopTimeoutNanoseconds / 1'000'000);
      break;
    }
    StateLease nested(*this, body);
    status = bindInputs(body, nested.get(), inputs);
    if (status) status = runSubgraph(body, nested.get());
    if (!status) break;
    for (size_t i = 0; i < carried.size(); ++i) {
      Value& from = nested->values[bodyGraph.outputs[i]];
      release(&carried[i]);
      carried[i] = from.take();
      inputs[i] = &carried[i];
    }
  }
  for (size_t i = 0; i < operation.outputs.size() && status; ++i) {
    const bool isCarried = inputs[i] == &carried[i];
    Value from;
    if (isCarried) {
      from = carried[i].take();
    } else {
      from.data = inputs[i]->data;
      from.dimensions = inputs[i]->dimensions;
      from.isPresent = inputs[i]->isPresent;
      if (!from.isPresent)
        status = fail(ErrorCode::kBadData, "WHILE hands out its input {}, which is omitted.", i);
    }
    if (status)
      status = handOut(subgraph.operands[operation.outputs[i]], std::move(from),
                       &state->values[operation.outputs[i]]);
  }
  for (Value& value : carried) release(&value);
  return status;
}

}  // namespace hearth::ops
