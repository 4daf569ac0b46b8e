// SPDX-License-Identifier: Apache-2.0
#include "runtime/control_flow_model.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "memory/pool.h"
#include "ops/control_flow.h"
#include "runtime/pool_layout.h"

namespace hearth::runtime {
namespace {

// The bytes of an argument, or null if they are not in this process.
uint8_t* bytesOf(const hal::Argument& argument) {
  if (argument.kind == hal::Argument::Kind::kPointer)
    return static_cast<uint8_t*>(argument.pointer);
  if (argument.kind == hal::Argument::Kind::kPool && argument.pool != nullptr)
    return const_cast<uint8_t*>(argument.pool->data()) + argument.offset;
  return nullptr;
}

hal::ExecutionResult failed(Error error) {
  hal::ExecutionResult result;
  result.status = std::unexpected(std::move(error));
  return result;
}

// One operation and its subgraphs; the base of IF and WHILE.
class ControlFlowModel : public hal::PreparedModel {
 public:
  explicit ControlFlowModel(std::shared_ptr<const graph::Model> part) : part_(std::move(part)) {}

  const graph::Operation& operation() const { return part_->main().operations[0]; }
  const graph::Subgraph& subgraph(size_t input) const {
    return part_->subgraphs[part_->main().operands[operation().inputs[input]].subgraphIndex];
  }

  // Prepares the subgraph that this input refers to, as a model of its own.
  Result<std::shared_ptr<hal::PreparedModel>> prepareInput(size_t input,
                                                           const PrepareSubgraph& prepare) const {
    auto model = std::make_shared<graph::Model>(*part_);
    model->main() = subgraph(input);
    return prepare(std::move(model));
  }

  // The arguments of the operation's inputs from `first` on.
  std::vector<hal::Argument> outerInputs(const hal::Request& request, size_t first) const {
    std::vector<hal::Argument> arguments;
    for (size_t i = first; i < operation().inputs.size(); ++i)
      arguments.push_back(input(request, operation().inputs[i]));
    return arguments;
  }

  hal::Argument input(const hal::Request& request, uint32_t index) const {
    const graph::Subgraph& main = part_->main();
    const auto position = std::find(main.inputs.begin(), main.inputs.end(), index);
    const graph::Operand& operand = main.operands[index];
    hal::Argument argument;
    if (position != main.inputs.end()) {
      argument = request.inputs[static_cast<size_t>(position - main.inputs.begin())];
    } else if (operand.isConstant()) {
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = const_cast<uint8_t*>(part_->constantData(operand));
      argument.length = operand.location.length;
    }
    // The subgraph may leave open dimensions that are known here.
    if (argument.dimensions.empty()) argument.dimensions = operand.dimensions;
    return argument;
  }

  // The arguments of the operation's outputs, in the operation's order.
  std::vector<hal::Argument> outputs(const hal::Request& request) const {
    const graph::Subgraph& main = part_->main();
    std::vector<hal::Argument> arguments;
    for (const uint32_t index : operation().outputs) {
      const auto position = std::find(main.outputs.begin(), main.outputs.end(), index);
      arguments.push_back(
          position == main.outputs.end()
              ? hal::Argument()
              : request.outputs[static_cast<size_t>(position - main.outputs.begin())]);
    }
    return arguments;
  }

  // Reorders shapes from the operation's outputs to the part's outputs.
  std::vector<hal::OutputShape> inPartOrder(const hal::OutputShapes& shapes) const {
    const graph::Subgraph& main = part_->main();
    std::vector<hal::OutputShape> ordered(main.outputs.size());
    for (size_t i = 0; i < shapes.size() && i < operation().outputs.size(); ++i) {
      const auto position =
          std::find(main.outputs.begin(), main.outputs.end(), operation().outputs[i]);
      if (position != main.outputs.end())
        ordered[static_cast<size_t>(position - main.outputs.begin())] = shapes[i];
    }
    return ordered;
  }

  Status checkRequest(const hal::Request& request) const {
    const graph::Subgraph& main = part_->main();
    if (request.inputs.size() != main.inputs.size() ||
        request.outputs.size() != main.outputs.size())
      return fail(ErrorCode::kBadData, "The request has {} inputs and {} outputs, not {} and {}.",
                  request.inputs.size(), request.outputs.size(), main.inputs.size(),
                  main.outputs.size());
    return {};
  }

  hal::StartReport startReport() const override {
    hal::StartReport report;
    report.reason = "control flow between devices";
    return report;
  }

 protected:
  const std::shared_ptr<const graph::Model> part_;
};

class IfModel final : public ControlFlowModel, public std::enable_shared_from_this<IfModel> {
 public:
  using ControlFlowModel::ControlFlowModel;

  Status prepare(const PrepareSubgraph& prepare) {
    HEARTH_ASSIGN(then_, prepareInput(ops::kIfThen, prepare));
    HEARTH_ASSIGN(else_, prepareInput(ops::kIfElse, prepare));
    return {};
  }
  hal::PreparedModel& branch(bool condition) const { return condition ? *then_ : *else_; }
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;

 private:
  std::shared_ptr<hal::PreparedModel> then_;
  std::shared_ptr<hal::PreparedModel> else_;
};

class IfExecution final : public hal::Execution {
 public:
  IfExecution(std::shared_ptr<const IfModel> model, hal::Request request)
      : model_(std::move(model)), request_(std::move(request)) {}

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    const uint8_t* const condition =
        bytesOf(model_->input(request_, model_->operation().inputs[ops::kIfCondition]));
    if (condition == nullptr)
      return failed(Error(ErrorCode::kOpFailed, "The condition of IF has no value."));
    hal::Request branch;
    branch.loopTimeout = request_.loopTimeout;
    branch.inputs = model_->outerInputs(request_, ops::kIfFirstInput);
    branch.outputs = model_->outputs(request_);
    auto execution = model_->branch(*condition != 0).createExecution(std::move(branch));
    if (!execution) return failed(std::move(execution.error()));
    hal::ExecutionResult result = (*execution)->compute(deadline);
    result.outputShapes = model_->inPartOrder(result.outputShapes);
    return result;
  }

 private:
  const std::shared_ptr<const IfModel> model_;
  const hal::Request request_;
};

Result<std::unique_ptr<hal::Execution>> IfModel::createExecution(hal::Request request) {
  HEARTH_TRY(checkRequest(request));
  return std::make_unique<IfExecution>(shared_from_this(), std::move(request));
}

class WhileModel final : public ControlFlowModel, public std::enable_shared_from_this<WhileModel> {
 public:
  using ControlFlowModel::ControlFlowModel;

  Status prepare(const PrepareSubgraph& prepare) {
    const graph::Subgraph& body = subgraph(ops::kWhileBody);
    for (const uint32_t index : body.outputs) {
      const graph::Operand& operand = body.operands[index];
      if (!graph::isFullySpecified(operand))
        return fail(ErrorCode::kUnsupported,
                    "No device takes a WHILE whose body gives {}, of unknown size.",
                    graph::describe(operand));
      HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(operand));
      places_.push_back({placeInPool(bytes, &bufferBytes_), bytes});
    }
    HEARTH_ASSIGN(condition_, prepareInput(ops::kWhileCondition, prepare));
    HEARTH_ASSIGN(body_, prepareInput(ops::kWhileBody, prepare));
    return {};
  }

  hal::PreparedModel& condition() const { return *condition_; }
  hal::PreparedModel& body() const { return *body_; }
  // Offset and length in bytes of each output of the body in a buffer.
  struct Place {
    uint64_t offset;
    uint64_t length;
  };
  const std::vector<Place>& places() const { return places_; }
  const graph::Dimensions& dimensions(size_t output) const {
    const graph::Subgraph& body = subgraph(ops::kWhileBody);
    return body.operands[body.outputs[output]].dimensions;
  }
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;

 private:
  std::shared_ptr<hal::PreparedModel> condition_;
  std::shared_ptr<hal::PreparedModel> body_;
  std::vector<Place> places_;
  uint64_t bufferBytes_ = 0;
};

class WhileExecution final : public hal::Execution {
 public:
  // Each iteration reads one buffer and writes the other.
  using Buffers = std::array<memory::PoolRef, 2>;

  WhileExecution(std::shared_ptr<const WhileModel> model, hal::Request request, Buffers buffers)
      : model_(std::move(model)), request_(std::move(request)), buffers_(std::move(buffers)) {}

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    const base::Deadline loopEnd = base::Deadline::after(request_.loopTimeout);
    std::vector<hal::Argument> values = model_->outerInputs(request_, ops::kWhileFirstInput);
    bool areInputs = true;  // the values that the next iteration may change
    uint64_t copied = 0;    // by the devices of condition and body
    for (size_t iteration = 0;; ++iteration) {
      uint8_t goesOn = 0;
      hal::Argument answer;
      answer.kind = hal::Argument::Kind::kPointer;
      answer.pointer = &goesOn;
      answer.length = sizeof(goesOn);
      if (Status status = run(model_->condition(), values, {answer}, deadline, &copied); !status)
        return failed(std::move(status.error()));
      if (loopEnd.hasPassed())
        return failed(Error(ErrorCode::kMissedDeadlineTransient,
                            "The WHILE takes longer than its time-out."));
      if (goesOn == 0) break;
      std::vector<hal::Argument> next = values;
      std::vector<hal::Argument> outputs;
      for (size_t i = 0; i < model_->places().size(); ++i) {
        next[i] = hal::Argument();
        next[i].kind = hal::Argument::Kind::kPool;
        next[i].dimensions = model_->dimensions(i);
        next[i].pool = buffers_[iteration % 2];
        next[i].offset = model_->places()[i].offset;
        next[i].length = model_->places()[i].length;
        outputs.push_back(next[i]);
      }
      if (Status status = run(model_->body(), values, std::move(outputs), deadline, &copied);
          !status)
        return failed(std::move(status.error()));
      values = std::move(next);
      areInputs = false;
    }
    hal::ExecutionResult result = finish(values, areInputs);
    if (result.status) result.copiedBytes += copied;
    return result;
  }

 private:
  Status run(hal::PreparedModel& prepared, const std::vector<hal::Argument>& inputs,
             std::vector<hal::Argument> outputs, const base::Deadline& deadline,
             uint64_t* copied) const {
    hal::Request request;
    request.loopTimeout = request_.loopTimeout;
    request.inputs = inputs;
    request.outputs = std::move(outputs);
    HEARTH_ASSIGN(const auto execution, prepared.createExecution(std::move(request)));
    const hal::ExecutionResult result = execution->compute(deadline);
    *copied += result.copiedBytes;
    const Status& status = result.status;
    // The buffer that is too small here is ours, not the client's.
    if (!status && status.error().code() == ErrorCode::kOutputInsufficientSize)
      return fail(ErrorCode::kOpFailed, "A value of WHILE is larger than it should be. {}",
                  status.error().toString());
    return status;
  }

  // Copies the values to the client's outputs.
  hal::ExecutionResult finish(const std::vector<hal::Argument>& values, bool areInputs) const {
    hal::ExecutionResult result;
    const std::vector<hal::Argument> outputs = model_->outputs(request_);
    std::vector<hal::OutputShape> shapes;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool isSufficient =
          outputs[i].kind == hal::Argument::Kind::kNoValue || outputs[i].length >= values[i].length;
      shapes.push_back({values[i].dimensions, isSufficient});
      if (!isSufficient && result.status)
        result.status = fail(ErrorCode::kOutputInsufficientSize, "An output buffer is too small.");
    }
    // Outputs may lie over inputs, also in another mapping of the same memory, so all of these are
    // read before one is written.
    std::vector<std::vector<uint8_t>> inputs(outputs.size());
    for (size_t i = 0; i < outputs.size() && result.status; ++i) {
      if (outputs[i].kind == hal::Argument::Kind::kNoValue) continue;
      const uint8_t* const from = bytesOf(values[i]);
      if (from == nullptr || bytesOf(outputs[i]) == nullptr)
        return failed(Error(ErrorCode::kOpFailed, "A value of WHILE is not in this process."));
      if (!areInputs) continue;
      inputs[i].assign(from, from + values[i].length);
      result.copiedBytes += values[i].length;
    }
    for (size_t i = 0; i < outputs.size() && result.status; ++i) {
      if (outputs[i].kind == hal::Argument::Kind::kNoValue) continue;
      std::copy_n(areInputs ? inputs[i].data() : bytesOf(values[i]), values[i].length,
                  bytesOf(outputs[i]));
      result.copiedBytes += values[i].length;
    }
    result.outputShapes = model_->inPartOrder(shapes);
    return result;
  }

  const std::shared_ptr<const WhileModel> model_;
  const hal::Request request_;
  const Buffers buffers_;
};

Result<std::unique_ptr<hal::Execution>> WhileModel::createExecution(hal::Request request) {
  HEARTH_TRY(checkRequest(request));
  WhileExecution::Buffers buffers;
  for (memory::PoolRef& buffer : buffers) {
    HEARTH_ASSIGN(buffer, memory::Pool::anonymous(std::max<uint64_t>(bufferBytes_, 1)));
  }
  return std::make_unique<WhileExecution>(shared_from_this(), std::move(request),
                                          std::move(buffers));
}

}  // namespace

Result<std::shared_ptr<hal::PreparedModel>> prepareControlFlow(
    std::shared_ptr<const graph::Model> part, const PrepareSubgraph& prepare) {
  if (part->main().operations[0].type == graph::OperationType::kIf) {
    auto made = std::make_shared<IfModel>(std::move(part));
    HEARTH_TRY_CONTEXT(made->prepare(prepare), "in a branch of IF");
    return made;
  }
  auto made = std::make_shared<WhileModel>(std::move(part));
  HEARTH_TRY_CONTEXT(made->prepare(prepare), "in a part of WHILE");
  return made;
}

}  // namespace hearth::runtime
