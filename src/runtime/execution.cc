// SPDX-License-Identifier: Apache-2.0
#include "runtime/execution.h"

#include <chrono>

#include "base/caught.h"
#include "base/fork_gate.h"
#include "base/trace.h"

namespace hearth::runtime {
namespace {

// Dimensions of this run: the argument's where it gives them, checked against the model's.
Status checkDimensions(const graph::Operand& operand, const graph::Dimensions& given) {
  if (given.empty()) return {};
  bool fits = operand.dimensions.size() == given.size() ||
              (operand.dimensions.empty() && !operand.isRankZeroTensor);
  for (size_t i = 0; fits && i < operand.dimensions.size(); ++i)
    fits = operand.dimensions[i] == 0 || operand.dimensions[i] == given[i];
  if (fits) return {};
  return fail(ErrorCode::kBadData, "The argument has shape {}; the model has {}.",
              graph::describeDimensions(given), graph::describe(operand));
}

Status checkArgument(const hal::Argument& argument) {
  switch (argument.kind) {
    case hal::Argument::Kind::kPointer:
      if (argument.pointer == nullptr && argument.length != 0)
        return fail(ErrorCode::kUnexpectedNull, "The argument has {} bytes at a null pointer.",
                    argument.length);
      return {};
    case hal::Argument::Kind::kPool:
      if (argument.pool == nullptr || !argument.pool->contains(argument.offset, argument.length))
        return fail(ErrorCode::kBadData, "The argument's range {} + {} is not in its pool of {}.",
                    argument.offset, argument.length,
                    argument.pool == nullptr ? 0 : argument.pool->size());
      return {};
    default:
      return fail(ErrorCode::kBadData, "The argument has no memory.");
  }
}

}  // namespace

Result<std::shared_ptr<Execution>> Execution::create(
    std::shared_ptr<const Compilation> compilation) {
  std::shared_ptr<Execution> execution(new Execution(std::move(compilation)));
  const Compilation& made = *execution->compilation_;
  HEARTH_ASSIGN(execution->states_, StateBuffers::create(made));
  execution->request_.inputs.resize(made.model().main().inputs.size());
  execution->request_.outputs.resize(made.model().main().outputs.size());
  return execution;
}

bool Execution::isInFlight() const {
  return isClaimed_ && claimedIn_ == base::ForkGate::generation();
}

Result<Execution::Claim> Execution::claim() {
  const std::lock_guard lock(mutex_);
  if (isInFlight()) return fail(ErrorCode::kBadState, "A run of this execution is in flight.");
  // What a thread of the parent was about to write may be half written.
  if (isClaimed_)
    return fail(ErrorCode::kBadState,
                "A run of this execution was in flight in the parent when this process was forked; "
                "it can only be freed.");
  isClaimed_ = true;
  claimedIn_ = base::ForkGate::generation();
  return Claim(this);
}

void Execution::release() {
  const std::lock_guard lock(mutex_);
  isClaimed_ = false;
  idle_.notify_all();
}

void Execution::waitUntilIdle() const {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return !isInFlight(); });
}

Status Execution::setInput(size_t index, hal::Argument argument) {
  if (index >= compilation_->inputCount())
    return fail(ErrorCode::kBadData, "There is no input {}; the model has {}.", index,
                compilation_->inputCount());
  const graph::Operand& operand = compilation_->input(index);
  HEARTH_TRY_CONTEXT(checkArgument(argument), "while setting input {}", index);
  HEARTH_TRY_CONTEXT(checkDimensions(operand, argument.dimensions), "while setting input {}",
                     index);
  graph::Operand sized = operand;
  if (!argument.dimensions.empty()) sized.dimensions = argument.dimensions;
  HEARTH_ASSIGN(const uint64_t needed, graph::byteSize(sized));
  if (argument.length != needed)
    return fail(ErrorCode::kBadData, "Input {} gets {} bytes; {} takes {}.", index, argument.length,
                graph::describe(sized), needed);
  HEARTH_ASSIGN(const Claim claimed, claim());
  request_.inputs[index] = std::move(argument);
  for (auto& bound : bound_) bound.reset();
  return {};
}

Status Execution::setOutput(size_t index, hal::Argument argument) {
  if (index >= compilation_->outputCount())
    return fail(ErrorCode::kBadData, "There is no output {}; the model has {}.", index,
                compilation_->outputCount());
  const graph::Operand& operand = compilation_->output(index);
  HEARTH_TRY_CONTEXT(checkArgument(argument), "while setting output {}", index);
  if (graph::isFullySpecified(operand)) {
    HEARTH_ASSIGN(const uint64_t needed, graph::byteSize(operand));
    if (argument.length < needed)
      return fail(ErrorCode::kBadData, "Output {} gets {} bytes; {} needs {}.", index,
                  argument.length, graph::describe(operand), needed);
    // Drivers want the exact size.
    argument.length = needed;
  }
  HEARTH_ASSIGN(const Claim claimed, claim());
  request_.outputs[index] = std::move(argument);
  for (auto& bound : bound_) bound.reset();
  return {};
}

Status Execution::bind(unsigned side) {
  for (size_t i = 0; i < compilation_->inputCount(); ++i)
    if (request_.inputs[i].kind == hal::Argument::Kind::kNoValue)
      return fail(ErrorCode::kBadState, "Input {} is not set.", i);
  for (size_t i = 0; i < compilation_->outputCount(); ++i)
    if (request_.outputs[i].kind == hal::Argument::Kind::kNoValue)
      return fail(ErrorCode::kBadState, "Output {} is not set.", i);
  hal::Request request = request_;
  states_.bind(side, &request);
  HEARTH_ASSIGN(bound_[side], compilation_->preparedModel().createExecution(std::move(request)));
  return {};
}

Status Execution::runClaimed(const base::Deadline& deadline) {
  const base::TraceSpan span("runtime", "execute");
  const auto begin = std::chrono::steady_clock::now();
  const unsigned side = states_.current();
  if (bound_[side] == nullptr) HEARTH_TRY(bind(side));
  hal::ExecutionResult result = bound_[side]->compute(deadline);
  const auto end = std::chrono::steady_clock::now();
  if (result.status) states_.flip();

  const std::lock_guard lock(mutex_);
  if (result.status || result.status.error().code() == ErrorCode::kOutputInsufficientSize)
    outputShapes_ = std::move(result.outputShapes);
  if (result.status) {
    ++statistics_.runs;
    statistics_.lastNs = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
    statistics_.timing = result.timing;
    statistics_.copiedBytes = result.copiedBytes;
  }
  return std::move(result.status);
}

Status Execution::compute(const base::Deadline& deadline) {
  HEARTH_ASSIGN(const Claim claimed, claim());
  return runClaimed(deadline);
}

Result<std::shared_ptr<Event>> Execution::start(const base::Deadline& deadline,
                                                Scheduler& scheduler) {
  HEARTH_ASSIGN(Claim claimed, claim());
  auto event = std::make_shared<Event>();
  HEARTH_TRY(
      scheduler.submit(compilation_->priority(), [self = shared_from_this(), event, deadline] {
        Status status = base::caught([&] { return self->runClaimed(deadline); });
        // In this order, so that who waited for the event can start the next run.
        self->release();
        event->complete(std::move(status));
      }));
  claimed.keep();
  return event;
}

Status Execution::resetState() {
  HEARTH_ASSIGN(const Claim claimed, claim());
  states_.reset();
  return {};
}

Result<graph::Dimensions> Execution::outputShape(size_t index) const {
  if (index >= compilation_->outputCount())
    return fail(ErrorCode::kBadData, "There is no output {}; the model has {}.", index,
                compilation_->outputCount());
  const std::lock_guard lock(mutex_);
  if (isInFlight()) return fail(ErrorCode::kBadState, "A run of this execution is in flight.");
  if (index < outputShapes_.size()) return outputShapes_[index].dimensions;
  const graph::Operand& operand = compilation_->output(index);
  if (graph::isFullySpecified(operand)) return operand.dimensions;
  return fail(ErrorCode::kBadState, "The shape of output {} is known after a run only.", index);
}

Statistics Execution::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace hearth::runtime
