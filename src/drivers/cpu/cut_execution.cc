// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/cut_execution.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "drivers/cpu/cut_model.h"
#include "drivers/cpu/dynamic_model.h"
#include "memory/budget.h"
#include "memory/pool.h"

namespace hearth::cpu {
namespace {

uint64_t bytesOf(const graph::Operand& operand, const graph::Dimensions& dimensions) {
  uint64_t count = 1;
  for (const uint32_t dimension : dimensions) count *= dimension;
  if (operand.type == graph::OperandType::kTensorInt4) return (count + 1) / 2;
  return count * graph::elementSize(operand);
}

bool overlap(const ops::RunArgument& a, const ops::RunArgument& b) {
  const auto first = reinterpret_cast<uintptr_t>(a.data);
  const auto second = reinterpret_cast<uintptr_t>(b.data);
  return a.length != 0 && b.length != 0 && first < second + b.length && second < first + a.length;
}

class CutExecution final : public hal::Execution, private ops::OutputRoom {
 public:
  CutExecution(std::shared_ptr<CutModel> model, hal::Request request, hal::BoundRequest bound)
      : model_(std::move(model)),
        request_(std::move(request)),
        bound_(std::move(bound)),
        tensors_(model_->slots().size()) {
    for (size_t s = 0; s < tensors_.size(); ++s) {
      const CutModel::Slot& slot = model_->slots()[s];
      tensors_[s].dimensions = slot.operand.dimensions;
      if (slot.input) tensors_[s].dimensions = bound_.inputs[*slot.input].dimensions;
    }
  }

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    const auto start = std::chrono::steady_clock::now();
    hal::ExecutionResult result;
    isTooSmall_.assign(request_.outputs.size(), false);
    result.status = computeParts(deadline, &result);
    const bool isDone = result.status.has_value();
    if (isDone || result.status.error().code() == ErrorCode::kOutputInsufficientSize)
      result.outputShapes = shapes();
    if (isDone)
      result.timing.inDriver = result.timing.onDevice =
          static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                    std::chrono::steady_clock::now() - start)
                                    .count());
    return result;
  }

 private:
  // What the execution knows of a slot.
  struct Tensor {
    graph::Dimensions dimensions;
    bool isOwn = false;          // lies in `memory`, not in the client's
    memory::PoolRef memory;      // kept for later computations
    std::shared_ptr<void> room;  // for `memory`
  };

  Status computeParts(const base::Deadline& deadline, hal::ExecutionResult* result) {
    HEARTH_TRY(copySharedInputs(result));
    if (model_->front() != nullptr) {
      HEARTH_ASSIGN(const bool isBound, bindFront());
      if (!isBound) return interpret(deadline, result);
      HEARTH_TRY(runFront(deadline, result));
    }
    HEARTH_TRY(runCut(deadline));
    if (model_->rest() != nullptr) {
      HEARTH_ASSIGN(const bool isBound, bindRest());
      if (!isBound) return interpret(deadline, result);
      HEARTH_TRY(runRest(deadline, result));
    }
    return checkSizes();
  }

  Status checkSizes() const {
    for (size_t i = 0; i < isTooSmall_.size(); ++i)
      if (isTooSmall_[i])
        return fail(ErrorCode::kOutputInsufficientSize, "The buffer of output {} is too small.", i);
    return {};
  }

  // Gives a slot memory of its own for so many bytes.
  Status makeOwn(uint32_t slot, uint64_t bytes) {
    Tensor& tensor = tensors_[slot];
    tensor.isOwn = true;
    if (tensor.memory != nullptr && tensor.memory->size() >= bytes) return {};
    // Room for a little more, since the next value may be a little larger.
    uint64_t size = std::max<uint64_t>(bytes + bytes / 4, 64);
    const uint64_t limit = model_->maxActivationBytes();
    if (limit != 0) {
      size = std::max<uint64_t>(bytes, 64);
      uint64_t all = size + model_->frontBytes();
      for (const Tensor& other : tensors_)
        if (&other != &tensor && other.memory != nullptr) all += other.memory->size();
      if (all > limit)
        return fail(ErrorCode::kOutOfMemory,
                    "The tensor {} needs {} bytes; with it the activations take {} bytes, the "
                    "limit is {}.",
                    graph::describe(model_->slots()[slot].operand), bytes, all, limit);
    }
    front_.reset();
    rest_.reset();
    tensor.memory.reset();
    tensor.room.reset();
    HEARTH_ASSIGN(tensor.room, memory::reserveRoom(size));
    HEARTH_ASSIGN(tensor.memory, memory::Pool::anonymous(size));
    return {};
  }

  // Operations write results while later parts have yet to read the inputs.
  Status copySharedInputs(hal::ExecutionResult* result) {
    for (uint32_t s = 0; s < tensors_.size(); ++s) {
      const CutModel::Slot& slot = model_->slots()[s];
      if (!slot.input) continue;
      const ops::RunArgument& input = bound_.inputs[*slot.input];
      if (std::ranges::none_of(bound_.outputs, [&](const ops::RunArgument& output) {
            return output.isPresent && overlap(input, output);
          }))
        continue;
      HEARTH_TRY(makeOwn(s, input.length));
      std::memcpy(tensors_[s].memory->mutableData(), input.data, input.length);
      result->copiedBytes += input.length;
    }
    // Of mappings that only this request has.
    return hal::checkMemoriesWhole(bound_.pools);
  }

  hal::Argument ownArgument(uint32_t slot, uint64_t length) const {
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPool;
    argument.pool = tensors_[slot].memory;
    argument.length = length;
    return argument;
  }

  hal::Argument inputArgument(uint32_t index) const {
    const CutModel::Slot& slot = model_->slots()[index];
    const Tensor& tensor = tensors_[index];
    const uint64_t bytes = bytesOf(slot.operand, tensor.dimensions);
    hal::Argument argument;
    if (tensor.isOwn)
      argument = ownArgument(index, bytes);
    else
      argument = slot.input ? request_.inputs[*slot.input] : request_.outputs[*slot.output];
    argument.length = bytes;
    if (!graph::isScalar(slot.operand.type)) argument.dimensions = tensor.dimensions;
    return argument;
  }

  // The client's memory for the slot; null where it is no output or the client omits it.
  const ops::RunArgument* clientOutput(uint32_t index) const {
    const CutModel::Slot& slot = model_->slots()[index];
    if (!slot.output || !bound_.outputs[*slot.output].isPresent) return nullptr;
    return &bound_.outputs[*slot.output];
  }

  // The client's argument for an output. Where a part knows the size of an output that the whole
  // model does not tell, its argument may be larger.
  hal::Argument clientArgument(uint32_t index) const {
    const CutModel::Slot& slot = model_->slots()[index];
    hal::Argument argument = request_.outputs[*slot.output];
    if (graph::isFullySpecified(slot.operand))
      argument.length = std::min(argument.length, bytesOf(slot.operand, slot.operand.dimensions));
    return argument;
  }

  // An output of known size, in the client's memory where that is possible.
  Result<hal::Argument> outputArgument(uint32_t index) {
    const CutModel::Slot& slot = model_->slots()[index];
    const uint64_t bytes = bytesOf(slot.operand, tensors_[index].dimensions);
    const ops::RunArgument* client = clientOutput(index);
    if (client != nullptr && client->length >= bytes) {
      tensors_[index].isOwn = false;
      return clientArgument(index);
    }
    HEARTH_TRY(makeOwn(index, bytes));
    return ownArgument(index, bytes);
  }

  // False where the whole model has to be interpreted, since a part cannot have such arguments; the
  // interpreter also says what is wrong with them.
  Result<bool> bind(hal::PreparedModel& part, hal::Request request,
                    std::unique_ptr<hal::Execution>* execution) const {
    request.loopTimeout = request_.loopTimeout;
    auto bound = part.createExecution(std::move(request));
    if (!bound) {
      if (hal::isForInterpreter(bound.error())) return false;
      return std::unexpected(std::move(bound.error()));
    }
    *execution = *std::move(bound);
    return true;
  }

  Result<bool> bindFront() {
    if (front_ != nullptr) return true;
    const CutModel::Arguments& arguments = model_->frontArguments();
    hal::Request request;
    for (const uint32_t output : arguments.outputs) {
      HEARTH_ASSIGN(hal::Argument argument, outputArgument(output));
      request.outputs.push_back(std::move(argument));
    }
    for (const uint32_t input : arguments.inputs) request.inputs.push_back(inputArgument(input));
    return bind(*model_->front(), std::move(request), &front_);
  }

  Status runFront(const base::Deadline& deadline, hal::ExecutionResult* result) {
    hal::ExecutionResult part = front_->compute(deadline);
    result->copiedBytes += part.copiedBytes;
    HEARTH_TRY(std::move(part.status));
    for (const uint32_t output : model_->frontArguments().outputs)
      if (tensors_[output].isOwn && clientOutput(output) != nullptr)
        isTooSmall_[*model_->slots()[output].output] = true;
    return {};
  }

  // Memory for an output of the operations at the cut, whose size is now known.
  Result<void*> make(size_t output, uint64_t bytes) override {
    const uint32_t slot = model_->cutArguments().outputs[output];
    HEARTH_TRY(makeOwn(slot, bytes));
    return tensors_[slot].memory->mutableData();
  }

  Status runCut(const base::Deadline& deadline) {
    const base::TraceSpan span("run", "operations whose results' shapes depend on values");
    const CutModel::Arguments& arguments = model_->cutArguments();
    std::vector<ops::RunArgument> inputs;
    for (const uint32_t index : arguments.inputs) {
      const CutModel::Slot& slot = model_->slots()[index];
      const Tensor& tensor = tensors_[index];
      ops::RunArgument argument;
      if (!tensor.isOwn) argument = slot.input ? bound_.inputs[*slot.input] : *clientOutput(index);
      if (tensor.isOwn) argument.data = tensor.memory->mutableData();
      argument.length = bytesOf(slot.operand, tensor.dimensions);
      argument.dimensions = tensor.dimensions;
      argument.isPresent = true;
      inputs.push_back(std::move(argument));
    }
    std::vector<ops::RunArgument> outputs;
    for (const uint32_t index : arguments.outputs) {
      ops::RunArgument argument;
      if (const ops::RunArgument* client = clientOutput(index); client != nullptr)
        argument = *client;
      else if (const memory::PoolRef& memory = tensors_[index].memory; memory != nullptr)
        argument = {memory->mutableData(), memory->size(), {}, true};
      else
        argument.isPresent = true;
      tensors_[index].isOwn = clientOutput(index) == nullptr;
      outputs.push_back(std::move(argument));
    }
    const ops::RunOptions options{deadline, request_.loopTimeout, this};
    HEARTH_ASSIGN(const std::vector<ops::RunOutputShape> shapes,
                  runWhole(inputs, outputs, options));
    for (size_t i = 0; i < arguments.outputs.size(); ++i) {
      const uint32_t index = arguments.outputs[i];
      // What the last computation was bound to may have had another shape.
      if (tensors_[index].dimensions != shapes[i].dimensions) rest_.reset();
      tensors_[index].dimensions = shapes[i].dimensions;
      if (!shapes[i].isSufficient && clientOutput(index) != nullptr)
        isTooSmall_[*model_->slots()[index].output] = true;
      // A value without elements has no memory.
      if (tensors_[index].isOwn) HEARTH_TRY(makeOwn(index, 0));
    }
    return {};
  }

  // Runs until a run has read no lost bytes.
  Result<std::vector<ops::RunOutputShape>> runWhole(const std::vector<ops::RunArgument>& inputs,
                                                    const std::vector<ops::RunArgument>& outputs,
                                                    const ops::RunOptions& options) {
    SavedSegments* const saved = model_->saved().get();
    while (true) {
      const uint64_t before = saved != nullptr ? saved->replacements() : 0;
      ops::RunResult run = model_->cut().run(inputs, outputs, options);
      if (saved == nullptr) {
        HEARTH_TRY(hal::checkPoolsWhole(model_->model()));
      } else {
        HEARTH_TRY(saved->replaceLost());
        if (saved->replacements() != before) continue;
      }
      HEARTH_TRY(std::move(run.status));
      return std::move(run.outputShapes);
    }
  }

  Result<bool> bindRest() {
    if (rest_ != nullptr) return true;
    const CutModel::Arguments& arguments = model_->restArguments();
    hal::Request request;
    for (const uint32_t input : arguments.inputs) request.inputs.push_back(inputArgument(input));
    for (const uint32_t output : arguments.outputs)
      request.outputs.push_back(clientArgument(output));
    return bind(*model_->rest(), std::move(request), &rest_);
  }

  Status runRest(const base::Deadline& deadline, hal::ExecutionResult* result) {
    hal::ExecutionResult part = rest_->compute(deadline);
    result->copiedBytes += part.copiedBytes;
    return takeOutputs(std::move(part), model_->restArguments().outputs);
  }

  Status takeOutputs(hal::ExecutionResult part, std::span<const uint32_t> slots) {
    const bool isTooSmall =
        !part.status && part.status.error().code() == ErrorCode::kOutputInsufficientSize;
    if (!isTooSmall) HEARTH_TRY(std::move(part.status));
    for (size_t i = 0; i < slots.size() && i < part.outputShapes.size(); ++i) {
      tensors_[slots[i]].dimensions = part.outputShapes[i].dimensions;
      if (!part.outputShapes[i].isSufficient) isTooSmall_[*model_->slots()[slots[i]].output] = true;
    }
    return {};
  }

  // Interprets the whole model.
  Status interpret(const base::Deadline& deadline, hal::ExecutionResult* result) {
    HEARTH_ASSIGN(const std::shared_ptr<hal::InterpretedModel> whole, model_->whole());
    hal::Request request = request_;
    std::vector<uint32_t> outputs(request.outputs.size());
    for (uint32_t s = 0; s < tensors_.size(); ++s) {
      const CutModel::Slot& slot = model_->slots()[s];
      if (slot.input) request.inputs[*slot.input] = inputArgument(s);
      if (slot.output) outputs[*slot.output] = s;
    }
    HEARTH_ASSIGN(const auto execution, whole->createExecution(std::move(request)));
    hal::ExecutionResult part = execution->compute(deadline);
    result->copiedBytes += part.copiedBytes;
    isTooSmall_.assign(isTooSmall_.size(), false);
    HEARTH_TRY(takeOutputs(std::move(part), outputs));
    return checkSizes();
  }

  hal::OutputShapes shapes() const {
    std::vector<hal::OutputShape> shapes(request_.outputs.size());
    for (size_t s = 0; s < tensors_.size(); ++s)
      if (const auto output = model_->slots()[s].output; output)
        shapes[*output] = {tensors_[s].dimensions, !isTooSmall_[*output]};
    return shapes;
  }

  const std::shared_ptr<CutModel> model_;
  const hal::Request request_;
  const hal::BoundRequest bound_;
  std::vector<Tensor> tensors_;   // by slot
  std::vector<bool> isTooSmall_;  // by output of the whole model
  // Executions of the parts with the memory and shapes of the last computation; null: to be made.
  std::unique_ptr<hal::Execution> front_;
  std::unique_ptr<hal::Execution> rest_;
};

}  // namespace

std::unique_ptr<hal::Execution> cutExecution(std::shared_ptr<CutModel> model, hal::Request request,
                                             hal::BoundRequest bound) {
  return std::make_unique<CutExecution>(std::move(model), std::move(request), std::move(bound));
}

}  // namespace hearth::cpu
