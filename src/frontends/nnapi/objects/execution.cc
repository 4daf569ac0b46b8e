// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/execution.h"

#include <utility>

#include "base/caught.h"
#include "base/mutex.h"
#include "base/trace.h"
#include "runtime/scheduler.h"

namespace hearth::nnapi {
namespace {

// NNAPI's executions know no other failures once their arguments are complete.
Error asExecutionError(Error error) {
  switch (error.code()) {
    case ErrorCode::kOpFailed:
    case ErrorCode::kOutputInsufficientSize:
    case ErrorCode::kUnavailableDevice:
    case ErrorCode::kMissedDeadlineTransient:
    case ErrorCode::kMissedDeadlinePersistent:
    case ErrorCode::kResourceExhaustedTransient:
    case ErrorCode::kResourceExhaustedPersistent:
      return error;
    default:
      return Error(ErrorCode::kOpFailed, error.toString());
  }
}

// Counts dependencies down, from whatever threads they end in.
struct Dependencies {
  base::Mutex mutex;
  size_t open = 0;
  std::optional<Error> failure;
};

}  // namespace

Execution::Execution(std::shared_ptr<const CompiledModel> compiled)
    : compiled_(std::move(compiled)),
      inputs_(compiled_->inputCount()),
      outputs_(compiled_->outputCount()) {}

Status Execution::checkComplete() const {
  for (const auto* slots : {&inputs_, &outputs_})
    for (size_t i = 0; i < slots->size(); ++i)
      if (!(*slots)[i].isSet)
        return fail(ErrorCode::kBadData, "The {} {} is not set.",
                    slots == &inputs_ ? "input" : "output", i);
  // A driver cannot write where it, or somebody else, reads or writes in the same computation.
  if (!hasMemories_) return {};
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].memory == nullptr || !outputs_[i].memory->hasState()) continue;
    for (const auto* slots : {&inputs_, &outputs_})
      for (const Slot& other : *slots)
        if (&other != &outputs_[i] && other.memory == outputs_[i].memory)
          return fail(ErrorCode::kBadData,
                      "The device memory of output {} is another argument, too.", i);
  }
  return {};
}

Result<hal::Argument> Execution::argumentOf(const Slot& slot, const graph::Operand& operand,
                                            bool isInput) const {
  if (slot.memory == nullptr) return slot.argument;
  HEARTH_ASSIGN(hal::Argument argument,
                slot.memory->argument(isInput, slot.dimensions, slot.range));
  // An image is as large as it is; its operand must be, too.
  if (argument.kind == hal::Argument::Kind::kPool) {
    graph::Operand sized = operand;
    sized.dimensions = argument.dimensions;
    if (graph::isFullySpecified(sized)) {
      HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(sized));
      if (bytes != argument.length)
        return fail(ErrorCode::kOpFailed, "The memory has {} bytes; {} needs {}.", argument.length,
                    graph::describe(sized), bytes);
    }
  }
  if (graph::isScalar(operand.type)) argument.dimensions.clear();
  return argument;
}

// The arguments, unless the driver has them already.
Result<std::optional<hal::Request>> Execution::newRequest() const {
  bool changes = bound_ == nullptr;
  if (!changes && !hasMemories_) return std::nullopt;
  hal::Request request;
  request.loopTimeout = loopTimeout_;
  const auto collect = [&](const std::vector<Slot>& slots, bool isInput,
                           std::vector<hal::Argument>* arguments) -> Status {
    for (size_t i = 0; i < slots.size(); ++i) {
      const graph::Operand& operand = isInput ? compiled_->input(i) : compiled_->output(i);
      HEARTH_ASSIGN(hal::Argument argument, argumentOf(slots[i], operand, isInput));
      arguments->push_back(std::move(argument));
      changes |= slots[i].memory != nullptr && slots[i].memory->hasState();
    }
    return {};
  };
  HEARTH_TRY(collect(inputs_, true, &request.inputs));
  HEARTH_TRY(collect(outputs_, false, &request.outputs));
  if (!changes) return std::nullopt;
  return request;
}

// Takes the execution in flight. With `collectsNow` the arguments are collected, and what is wrong
// with them leaves the execution as it was. The result is when the computation must end.
Result<base::Deadline> Execution::begin(bool collectsNow) {
  const std::lock_guard lock(mutex_);
  const base::Deadline deadline =
      timeout_ == 0 ? base::Deadline() : base::Deadline::after(timeout_);
  HEARTH_TRY(requireChangeable());
  HEARTH_TRY(checkComplete());
  if (collectsNow) {
    auto request = newRequest();
    if (!request) return std::unexpected(asExecutionError(std::move(request.error())));
    request_ = std::move(*request);
  }
  state_ = State::kInFlight;
  return deadline;
}

hal::ExecutionResult Execution::runBound(const base::Deadline& deadline) {
  if (request_) {
    bound_.reset();
    auto bound = compiled_->plan().prepared->createExecution(*std::exchange(request_, {}));
    if (!bound) {
      hal::ExecutionResult result;
      result.status = std::unexpected(std::move(bound.error()));
      return result;
    }
    bound_ = std::move(*bound);
  }
  return bound_->compute(deadline);
}

// A driver that refuses the arguments has failed the computation: it uses the execution up.
Status Execution::run(const base::Deadline& deadline) noexcept {
  hal::ExecutionResult result;
  Status computed = base::caught([&] {
    const base::TraceSpan span("nnapi", "execution");
    result = runBound(deadline);
    if (!result.status) result.status = std::unexpected(asExecutionError(result.status.error()));
  });
  if (!computed) result.status = std::move(computed);
  return end(std::move(result));
}

Status Execution::end(hal::ExecutionResult result) noexcept {
  const auto finishOutputs = [&] {
    const bool succeeded = result.status.has_value();
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].memory != nullptr)
        outputs_[i].memory->finishOutput(succeeded, succeeded && i < result.outputShapes.size()
                                                        ? result.outputShapes[i].dimensions
                                                        : graph::Dimensions());
  };
  if (hasMemories_) {
    if (Status finished = base::caught(finishOutputs); !finished && result.status)
      result.status = std::move(finished);
  }
  const bool succeeded = result.status.has_value();
  const std::lock_guard lock(mutex_);
  failure_.reset();
  if (!succeeded) failure_ = result.status.error().code();
  shapes_ = std::move(result.outputShapes);
  timing_ = succeeded && isMeasured_ ? result.timing : hal::Timing();
  state_ = State::kDone;
  return std::move(result.status);
}

Status Execution::abandon(Error error) noexcept {
  hal::ExecutionResult result;
  result.status = std::unexpected(std::move(error));
  return end(std::move(result));
}

Status Execution::compute() {
  HEARTH_ASSIGN(const base::Deadline deadline, begin(true));
  return run(deadline);
}

Status Execution::burstCompute(Burst& burst) {
  if (burst.compiled != compiled_)
    return fail(ErrorCode::kBadData, "The burst is for another compilation.");
  if (burst.isBusy.exchange(true, std::memory_order_acquire))
    return fail(ErrorCode::kBadState, "The burst computes already.");
  Status status = base::caught([this] { return compute(); });
  burst.isBusy.store(false, std::memory_order_release);
  return status;
}

Result<std::shared_ptr<runtime::Event>> Execution::start() {
  auto event = std::make_shared<runtime::Event>();
  HEARTH_ASSIGN(const base::Deadline deadline, begin(true));
  Status submitted = base::caught([&] {
    return runtime::Scheduler::shared().submit(
        compiled_->priority(),
        [self = shared_from_this(), event, deadline] { event->complete(self->run(deadline)); });
  });
  if (!submitted) return std::unexpected(abandon(std::move(submitted.error())).error());
  return event;
}

Result<std::shared_ptr<runtime::Event>> Execution::startAfter(
    std::span<const std::shared_ptr<runtime::Event>> dependencies, uint64_t duration) {
  if (duration != 0 && !compiled_->hasSingleExplicitDevice())
    return fail(ErrorCode::kBadData,
                "A duration needs a compilation with exactly one listed device.");
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Slot& slot = outputs_[i];
      if (!slot.isSet || isOmitted(slot) || slot.isSizeKnown) continue;
      return fail(ErrorCode::kBadData,
                  "The output {} is {} and set with the dimensions {}; with dependencies its size "
                  "must be known.",
                  i, graph::describe(compiled_->output(i)),
                  graph::describeDimensions(slot.dimensions));
    }
  }
  // What the dependencies write is not there yet, so arguments are bound when they are done.
  auto event = std::make_shared<runtime::Event>();
  auto waiting = std::make_shared<Dependencies>();
  // One for this call itself, so that nothing starts before all are registered.
  waiting->open = dependencies.size() + 1;
  HEARTH_TRY(begin(false));
  // When all are done: an error is the result of the computation, which then does not start.
  const auto submit = [self = shared_from_this(), event, waiting, duration]() -> Status {
    if (waiting->failure)
      return fail(ErrorCode::kOpFailed, "A dependency failed: {}", waiting->failure->toString());
    const base::Deadline deadline =
        duration == 0 ? base::Deadline() : base::Deadline::after(duration);
    return runtime::Scheduler::shared().submit(
        self->compiled_->priority(), [self, event, deadline] {
          Status collected = base::caught([&]() -> Status {
            auto request = self->newRequest();
            if (!request) return std::unexpected(asExecutionError(std::move(request.error())));
            self->request_ = std::move(*request);
            return {};
          });
          event->complete(collected ? self->run(deadline)
                                    : self->abandon(std::move(collected.error())));
        });
  };
  const auto oneIsDone = [self = shared_from_this(), event, waiting,
                          submit](const Status& status) noexcept {
    {
      const std::lock_guard lock(waiting->mutex);
      if (!status && !waiting->failure && !base::caught([&] { waiting->failure = status.error(); }))
        waiting->failure.emplace(status.error().code(), "");
      if (--waiting->open != 0) return;
    }
    if (Status submitted = base::caught(submit); !submitted)
      event->complete(self->abandon(std::move(submitted.error())));
  };
  for (const std::shared_ptr<runtime::Event>& dependency : dependencies)
    if (const Status registered = base::caught([&] { dependency->whenDone(oneIsDone); });
        !registered)
      oneIsDone(registered);
  oneIsDone({});
  return event;
}

Result<Execution::OutputShape> Execution::outputShape(int32_t index) const {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kDone)
    return fail(ErrorCode::kBadState, "The execution has not computed yet.");
  if (failure_ && *failure_ != ErrorCode::kOutputInsufficientSize)
    return fail(ErrorCode::kBadState, "The computation failed ({}).",
                base::errorCodeName(*failure_));
  if (index < 0 || static_cast<size_t>(index) >= outputs_.size())
    return fail(ErrorCode::kBadData, "There is no output {}; the model has {}.", index,
                outputs_.size());
  const auto position = static_cast<size_t>(index);
  if (position >= shapes_.size()) return OutputShape{compiled_->output(position).dimensions, true};
  return OutputShape{shapes_[position].dimensions, shapes_[position].isSufficient};
}

bool Execution::isScalarOutput(int32_t index) const {
  return index >= 0 && static_cast<size_t>(index) < outputs_.size() &&
         graph::isScalar(compiled_->output(static_cast<size_t>(index)).type);
}

Result<uint64_t> Execution::duration(int32_t code) const {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kDone)
    return fail(ErrorCode::kBadState, "The execution has not computed yet.");
  if (failure_)
    return fail(ErrorCode::kBadState, "The computation failed ({}).",
                base::errorCodeName(*failure_));
  if (!isMeasured_) return fail(ErrorCode::kBadState, "The execution does not measure its time.");
  switch (code) {
    case ANEURALNETWORKS_DURATION_ON_HARDWARE:
    case ANEURALNETWORKS_FENCED_DURATION_ON_HARDWARE:
      return timing_.onDevice;
    case ANEURALNETWORKS_DURATION_IN_DRIVER:
    case ANEURALNETWORKS_FENCED_DURATION_IN_DRIVER:
      return timing_.inDriver;
    default:
      return fail(ErrorCode::kBadData, "The duration code {} is unknown.", code);
  }
}

}  // namespace hearth::nnapi
