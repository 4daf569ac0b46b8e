// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/execution.h"

#include <utility>

#include "base/caught.h"
#include "base/mutex.h"
#include "base/trace.h"
#include "runtime/scheduler.h"

namespace hearth::nnapi {
namespace {

// Maps an error to the failures that NNAPI allows for an execution with complete arguments.
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

}  // namespace

Result<std::shared_ptr<Execution>> Execution::create(
    std::shared_ptr<const runtime::Compilation> compiled) {
  HEARTH_ASSIGN(auto runs, runtime::Execution::create(std::move(compiled)));
  return std::shared_ptr<Execution>(new Execution(std::move(runs)));
}

Execution::Execution(std::shared_ptr<runtime::Execution> runs)
    : runs_(std::move(runs)),
      compiled_(&runs_->compilation()),
      inputs_(compiled_->inputCount()),
      outputs_(compiled_->outputCount()) {}

Status Execution::checkComplete() const {
  for (const auto* slots : {&inputs_, &outputs_})
    for (size_t i = 0; i < slots->size(); ++i)
      if (!(*slots)[i].isSet)
        return fail(ErrorCode::kBadData, "The {} {} is not set.",
                    slots == &inputs_ ? "input" : "output", i);
  // In one computation, no driver can write to a device memory that is another argument, too.
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
                                            bool isInput, Dependencies dependencies) const {
  if (slot.memory == nullptr) return slot.argument;
  const bool isLater = isInput && dependencies == Dependencies::kInFlight;
  HEARTH_ASSIGN(hal::Argument argument,
                isLater ? slot.memory->laterArgument(slot.dimensions, slot.range)
                        : slot.memory->argument(isInput, slot.dimensions, slot.range));
  // An image is used as a whole, so its operand must have the same size.
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

Status Execution::collect(const Claim& claim, Dependencies dependencies) {
  bool changes = hasChanged_ || !runs_->isBound(claim);
  if (!changes && !hasMemories_) return {};
  hal::Request request;
  request.loopTimeout = loopTimeout_;
  const auto add = [&](const std::vector<Slot>& slots, bool isInput,
                       std::vector<hal::Argument>* arguments) -> Status {
    for (size_t i = 0; i < slots.size(); ++i) {
      const graph::Operand& operand = isInput ? compiled_->input(i) : compiled_->output(i);
      HEARTH_ASSIGN(hal::Argument argument, argumentOf(slots[i], operand, isInput, dependencies));
      arguments->push_back(std::move(argument));
      changes |= slots[i].memory != nullptr && slots[i].memory->hasState();
    }
    return {};
  };
  HEARTH_TRY(add(inputs_, true, &request.inputs));
  HEARTH_TRY(add(outputs_, false, &request.outputs));
  if (!changes) return {};
  runs_->setRequest(claim, std::move(request));
  hasChanged_ = false;
  return {};
}

// Claims the execution. With `collectsNow` it collects the arguments, too; wrong arguments leave
// the execution as it was.
Result<Execution::Begun> Execution::begin(bool collectsNow) {
  const std::lock_guard lock(mutex_);
  const base::Deadline deadline =
      timeout_ == 0 ? base::Deadline() : base::Deadline::after(timeout_);
  HEARTH_TRY(requireChangeable());
  HEARTH_TRY(checkComplete());
  HEARTH_ASSIGN(Claim claim, runs_->claim());
  if (collectsNow)
    if (Status collected = collect(claim); !collected)
      return std::unexpected(asExecutionError(std::move(collected.error())));
  return Begun{std::move(claim), deadline};
}

Result<bool> Execution::growOutputs(const hal::ExecutionResult& result) const {
  if (!hasMemories_ || result.status ||
      result.status.error().code() != ErrorCode::kOutputInsufficientSize ||
      result.outputShapes.size() != outputs_.size())
    return false;
  bool hasGrown = false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (result.outputShapes[i].isSufficient) continue;
    // A buffer of the client's is too small in any case.
    if (outputs_[i].memory == nullptr) return false;
    HEARTH_ASSIGN(hasGrown, outputs_[i].memory->grow(result.outputShapes[i].dimensions));
    if (!hasGrown) return false;
  }
  return hasGrown;
}

hal::ExecutionResult Execution::runGrowing(const Claim& claim, const base::Deadline& deadline) {
  hal::ExecutionResult result = runs_->run(claim, deadline);
  // A device may find one size after the other, but not more often than there are outputs.
  for (size_t rounds = 0; rounds < outputs_.size(); ++rounds) {
    const Result<bool> hasGrown = growOutputs(result);
    if (hasGrown && !*hasGrown) break;
    Status status;
    if (hasGrown) {
      const std::lock_guard lock(mutex_);
      status = collect(claim);
    } else {
      status = std::unexpected(hasGrown.error());
    }
    if (!status) {
      result = {};
      result.status = std::move(status);
      break;
    }
    result = runs_->run(claim, deadline);
  }
  return result;
}

// A driver that refuses the arguments fails the computation, which uses the execution up.
Status Execution::run(const Claim& claim, const base::Deadline& deadline) noexcept {
  hal::ExecutionResult result;
  Status computed = base::caught([&] {
    const base::TraceSpan span("nnapi", "execution");
    result = runGrowing(claim, deadline);
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
  isDone_ = true;
  return std::move(result.status);
}

Status Execution::abandon(Error error) noexcept {
  hal::ExecutionResult result;
  result.status = std::unexpected(std::move(error));
  return end(std::move(result));
}

Status Execution::compute() {
  HEARTH_ASSIGN(const Begun begun, begin(true));
  return run(begun.claim, begun.deadline);
}

Status Execution::burstCompute(Burst& burst) {
  if (burst.compiled.get() != compiled_)
    return fail(ErrorCode::kBadData, "The burst is for another compilation.");
  if (burst.isBusy.exchange(true, std::memory_order_acquire))
    return fail(ErrorCode::kBadState, "The burst computes already.");
  Status status = base::caught([this] { return compute(); });
  burst.isBusy.store(false, std::memory_order_release);
  return status;
}

Result<std::shared_ptr<runtime::Event>> Execution::start() {
  HEARTH_ASSIGN(Begun begun, begin(true));
  auto event = base::caught([&] {
    return runs_->schedule(
        std::move(begun.claim),
        [self = shared_from_this(), deadline = begun.deadline](const Claim& claim) {
          return self->run(claim, deadline);
        },
        runtime::Scheduler::shared());
  });
  if (!event) return std::unexpected(abandon(std::move(event.error())).error());
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
  HEARTH_ASSIGN(Begun begun, begin(false));
  if (auto event = startOnDevice(begun.claim, dependencies, duration)) return event;
  // Collects the arguments when the dependencies are done, because these may write them.
  return runs_->scheduleAfter(
      std::move(begun.claim), dependencies, duration,
      [self = shared_from_this()](const Claim& claim, const base::Deadline& deadline,
                                  const Status& isReady) -> Status {
        if (!isReady) return self->abandon(isReady.error());
        Status collected = base::caught([&]() -> Status {
          const std::lock_guard lock(self->mutex_);
          return self->collect(claim);
        });
        if (!collected) return self->abandon(asExecutionError(std::move(collected.error())));
        return self->run(claim, deadline);
      },
      runtime::Scheduler::shared());
}

std::shared_ptr<runtime::Event> Execution::startOnDevice(
    Claim& claim, std::span<const std::shared_ptr<runtime::Event>> dependencies,
    uint64_t duration) {
  if (!compiled_->preparedModel().hasFences()) return nullptr;
  const auto start = [&]() -> Result<base::Descriptor> {
    std::vector<base::Descriptor> fences;
    for (const std::shared_ptr<runtime::Event>& dependency : dependencies) {
      if (dependency->isDone()) {
        HEARTH_TRY(*dependency->wait({}));
        continue;
      }
      HEARTH_ASSIGN(base::Descriptor fence, dependency->deviceFence());
      fences.push_back(std::move(fence));
    }
    // The time begins when the dependencies are done, which a device does not tell.
    if (duration != 0 && !fences.empty())
      return fail(ErrorCode::kUnsupported, "A duration begins with the end of the dependencies.");
    {
      const std::lock_guard lock(mutex_);
      HEARTH_TRY(collect(claim, fences.empty() ? Dependencies::kDone : Dependencies::kInFlight));
    }
    return runs_->startFenced(claim, std::move(fences),
                              duration == 0 ? base::Deadline() : base::Deadline::after(duration));
  };
  auto fence = base::caught(start);
  if (!fence) return nullptr;
  return runs_->scheduleFenced(
      std::move(claim), dependencies, std::move(*fence),
      [self = shared_from_this()](const Claim& held, const base::Deadline& /*deadline*/,
                                  const Status& isReady) {
        return self->finishOnDevice(held, isReady);
      },
      runtime::Scheduler::shared());
}

Status Execution::finishOnDevice(const Claim& claim, const Status& isReady) noexcept {
  hal::ExecutionResult result;
  Status finished = base::caught([&]() -> Status {
    const base::TraceSpan span("nnapi", "end of a fenced execution");
    result = runs_->finishFenced(claim);
    HEARTH_TRY(isReady);
    if (!result.status) return std::unexpected(asExecutionError(result.status.error()));
    for (const Slot& input : inputs_)
      if (input.memory != nullptr) HEARTH_TRY(input.memory->checkValue());
    return {};
  });
  if (!finished) {
    result.status = std::move(finished);
    result.outputShapes.clear();
  }
  return end(std::move(result));
}

Result<Execution::OutputShape> Execution::outputShape(int32_t index) const {
  const std::lock_guard lock(mutex_);
  if (!isDone_ || runs_->isInFlight())
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
  if (!isDone_ || runs_->isInFlight())
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
