// SPDX-License-Identifier: Apache-2.0
#include "runtime/execution.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/caught.h"
#include "base/fork_gate.h"
#include "base/log.h"
#include "base/trace.h"
#include "hal/request_check.h"
#include "runtime/fallback_model.h"
#include "runtime/fence_watcher.h"

namespace hearth::runtime {
namespace {

// kBadData when the dimensions of an argument, if it gives any, contradict the model's.
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

// kBadData when the argument of an input of these dimensions has another length.
Status checkLength(const graph::Operand& operand, uint64_t length, size_t index) {
  HEARTH_ASSIGN(const uint64_t needed, graph::byteSize(operand));
  if (length == needed) return {};
  return fail(ErrorCode::kBadData, "Input {} gets {} bytes; {} takes {}.", index, length,
              graph::describe(operand), needed);
}

}  // namespace

Result<std::shared_ptr<Execution>> Execution::create(
    std::shared_ptr<const Compilation> compilation) {
  std::shared_ptr<Execution> execution(new Execution(std::move(compilation)));
  const Compilation& made = *execution->compilation_;
  HEARTH_ASSIGN(execution->states_, StateBuffers::create(made));
  const auto hasStrings = [](const graph::Subgraph& subgraph) {
    return std::ranges::find(subgraph.operands, graph::OperandType::kTensorString,
                             &graph::Operand::type) != subgraph.operands.end();
  };
  if (std::ranges::any_of(made.model().subgraphs, hasStrings))
    execution->strings_ = std::make_unique<memory::StringScope>();
  execution->request_.inputs.resize(made.model().main().inputs.size());
  execution->request_.outputs.resize(made.model().main().outputs.size());
  return execution;
}

bool Execution::isInFlight() const {
  return claimedIn_.load() != 0;
}

Result<Execution::Claim> Execution::claim() {
  uint64_t claimed = 0;
  if (claimedIn_.compare_exchange_strong(claimed, claimOfThisProcess())) return Claim(this);
  if (claimed == claimOfThisProcess())
    return fail(ErrorCode::kBadState, "A run of this execution is in flight.");
  // A thread of the parent may have written its members by half.
  return fail(ErrorCode::kBadState,
              "A run of this execution was in flight in the parent when this process was forked; "
              "it can only be freed.");
}

void Execution::release() {
  const std::lock_guard lock(mutex_);
  releaseLocked();
}

void Execution::releaseLocked() {
  claimedIn_.store(0);
  idle_.notify_all();
}

void Execution::waitUntilIdle() const {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return !isClaimedHere(); });
}

Status Execution::setInput(size_t index, hal::Argument argument) {
  if (index >= compilation_->inputCount())
    return fail(ErrorCode::kBadData, "There is no input {}; the model has {}.", index,
                compilation_->inputCount());
  const graph::Operand& operand = compilation_->input(index);
  HEARTH_TRY_CONTEXT(checkArgument(argument), "while setting input {}", index);
  HEARTH_TRY_CONTEXT(checkDimensions(operand, argument.dimensions), "while setting input {}",
                     index);
  if (argument.dimensions.empty() || argument.dimensions == operand.dimensions) {
    HEARTH_TRY(checkLength(operand, argument.length, index));
  } else {
    graph::Operand sized = operand;
    sized.dimensions = argument.dimensions;
    HEARTH_TRY(checkLength(sized, argument.length, index));
  }
  HEARTH_ASSIGN(const Claim claimed, claim());
  setArgument(std::move(argument), &request_.inputs[index]);
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
    // Drivers expect the exact size.
    argument.length = needed;
  }
  HEARTH_ASSIGN(const Claim claimed, claim());
  setArgument(std::move(argument), &request_.outputs[index]);
  return {};
}

void Execution::setArgument(hal::Argument argument, hal::Argument* to) {
  // Bound requests stay as they are for an argument that is the same.
  if (argument.kind == hal::Argument::Kind::kPointer && to->kind == argument.kind &&
      to->pointer == argument.pointer && to->length == argument.length &&
      to->dimensions == argument.dimensions && to->hasReadableTail == argument.hasReadableTail)
    return;
  *to = std::move(argument);
  for (auto& bound : bound_) bound.reset();
}

Status Execution::checkComplete() const {
  for (size_t i = 0; i < compilation_->inputCount(); ++i)
    if (request_.inputs[i].kind == hal::Argument::Kind::kNoValue)
      return fail(ErrorCode::kBadState, "Input {} is not set.", i);
  for (size_t i = 0; i < compilation_->outputCount(); ++i)
    if (request_.outputs[i].kind == hal::Argument::Kind::kNoValue)
      return fail(ErrorCode::kBadState, "Output {} is not set.", i);
  return {};
}

void Execution::setRequest(const Claim& /*claim*/, hal::Request request) {
  request_ = std::move(request);
  isWhole_ = true;
  for (auto& bound : bound_) bound.reset();
}

Status Execution::bind(unsigned side) {
  // A request set as a whole is bound only once if there is no state, so it can be moved.
  hal::Request request =
      isWhole_ && compilation_->states().empty() ? std::move(request_) : hal::Request(request_);
  request.inputs.resize(compilation_->model().main().inputs.size());
  request.outputs.resize(compilation_->model().main().outputs.size());
  states_.bind(side, &request);
  boundMemories_[side].clear();
  for (const auto* const arguments : {&request.inputs, &request.outputs})
    for (const hal::Argument& argument : *arguments)
      if (argument.pool != nullptr) boundMemories_[side].push_back(argument.pool);
  HEARTH_ASSIGN(bound_[side], compilation_->preparedModel().createExecution(std::move(request)));
  return {};
}

bool Execution::leaveDevices(const Error& error) {
  if (!states_.isOnDevice() || compilation_->hasExplicitDevices() ||
      !isWorthAnotherDevice(error, Attempt::kExecution, false))
    return false;
  if (const Status left = states_.leaveDevices(); !left) {
    base::logWarn("The state of an execution is lost with its device. {}", left.error().toString());
    return false;
  }
  for (auto& bound : bound_) bound.reset();
  return true;
}

Status Execution::bindAnywhere(unsigned side) {
  if (bound_[side] != nullptr) return {};
  Status bound = bind(side);
  if (!bound && leaveDevices(bound.error())) bound = bind(side);
  return bound;
}

hal::ExecutionResult Execution::computeOn(unsigned side, const base::Deadline& deadline) {
  if (bound_[side] == nullptr) [[unlikely]]
    if (Status bound = bindAnywhere(side); !bound) return {.status = std::move(bound)};
  return bound_[side]->compute(deadline);
}

Status Execution::renewStrings() {
  auto renewed = std::make_unique<memory::StringScope>();
  for (size_t i = 0; i < compilation_->inputCount() && i < request_.inputs.size(); ++i) {
    const hal::Argument& argument = request_.inputs[i];
    if (compilation_->input(i).type != graph::OperandType::kTensorString ||
        argument.kind != hal::Argument::Kind::kPointer)
      continue;
    const auto* const elements = static_cast<const memory::StringHandle*>(argument.pointer);
    HEARTH_TRY_CONTEXT(renewed->keep({elements, argument.length / sizeof *elements}), "in input {}",
                       i);
  }
  strings_ = std::move(renewed);
  return {};
}

hal::ExecutionResult Execution::run(const Claim& /*claim*/, const base::Deadline& deadline) {
  if (strings_ == nullptr) return runBound(deadline);
  if (Status renewed = renewStrings(); !renewed) return {.status = std::move(renewed)};
  const memory::StringScopeOfThread scope(strings_.get());
  return runBound(deadline);
}

hal::ExecutionResult Execution::runBound(const base::Deadline& deadline) {
  const unsigned side = states_.current();
  hal::ExecutionResult result = computeOn(side, deadline);
  // Nothing is bound any more then.
  if (!result.status && leaveDevices(result.status.error())) result = computeOn(side, deadline);
  end(side, result);
  return result;
}

void Execution::end(unsigned side, hal::ExecutionResult& result) {
  // The loss may be the reason of another failure.
  if (Status whole = hal::checkMemoriesWhole(boundMemories_[side]); !whole) {
    result.status = std::move(whole);
    result.outputShapes.clear();
  }
  if (result.status) states_.flip();
}

Result<base::Descriptor> Execution::startFenced(const Claim& /*claim*/,
                                                std::vector<base::Descriptor> fences,
                                                const base::Deadline& deadline) {
  if (!compilation_->preparedModel().hasFences() || strings_ != nullptr)
    return fail(ErrorCode::kUnsupported, "The model has no fenced executions.");
  const unsigned side = states_.current();
  if (bound_[side] == nullptr) HEARTH_TRY(bind(side));
  return bound_[side]->startFenced(std::move(fences), deadline);
}

hal::ExecutionResult Execution::finishFenced(const Claim& /*claim*/) {
  const unsigned side = states_.current();
  hal::ExecutionResult result = bound_[side]->finishFenced();
  end(side, result);
  return result;
}

Status Execution::runAndNote(const Claim& claim, const base::Deadline& deadline, Claim* released) {
  const base::TraceSpan span("runtime", "execute");
  const auto begin = std::chrono::steady_clock::now();
  HEARTH_TRY(checkComplete());
  hal::ExecutionResult result = run(claim, deadline);
  const auto end = std::chrono::steady_clock::now();

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
  if (released != nullptr) {
    released->execution_ = nullptr;
    releaseLocked();
  }
  return std::move(result.status);
}

Status Execution::prepareRun() {
  HEARTH_ASSIGN(const Claim claimed, claim());
  HEARTH_TRY(checkComplete());
  return bindAnywhere(states_.current());
}

Status Execution::compute(const base::Deadline& deadline) {
  HEARTH_ASSIGN(Claim claimed, claim());
  return runAndNote(claimed, deadline, &claimed);
}

Result<std::shared_ptr<Event>> Execution::start(const base::Deadline& deadline,
                                                Scheduler& scheduler) {
  HEARTH_ASSIGN(Claim claimed, claim());
  return schedule(
      std::move(claimed),
      [this, deadline](const Claim& held) { return runAndNote(held, deadline, nullptr); },
      scheduler);
}

Result<std::shared_ptr<Event>> Execution::schedule(Claim claim, Work work, Scheduler& scheduler) {
  auto event = std::make_shared<Event>();
  auto held = std::make_shared<Claim>(std::move(claim));
  HEARTH_TRY(scheduler.submit(
      compilation_->priority(),
      [self = shared_from_this(), held = std::move(held), event, work = std::move(work)] {
        Status status = base::caught([&] { return work(*held); });
        // The claim first, so that a thread that waited for the event can start the next run.
        held->release();
        event->complete(std::move(status));
      }));
  return event;
}

namespace {

// Work that waits for events. Each event counts `open` down in the thread that completes it.
struct Waiting {
  const std::shared_ptr<Execution> execution;
  Execution::Claim claim;
  const Execution::DependentWork work;
  const uint64_t duration;
  Scheduler& scheduler;
  const std::shared_ptr<Event> event;
  base::Mutex mutex;
  size_t open = 0;
  std::optional<Error> failure;

  void finish(const base::Deadline& deadline, const Status& isReady) noexcept {
    Status status = base::caught([&] { return work(claim, deadline, isReady); });
    claim.release();
    event->complete(std::move(status));
  }
};

Status submit(const std::shared_ptr<Waiting>& waiting) {
  if (waiting->failure)
    return fail(ErrorCode::kOpFailed, "A dependency failed: {}", waiting->failure->toString());
  const base::Deadline deadline =
      waiting->duration == 0 ? base::Deadline() : base::Deadline::after(waiting->duration);
  return waiting->scheduler.submit(waiting->execution->compilation().priority(),
                                   [waiting, deadline] { waiting->finish(deadline, {}); });
}

void oneIsDone(const std::shared_ptr<Waiting>& waiting, const Status& status) noexcept {
  {
    const std::lock_guard lock(waiting->mutex);
    if (!status && !waiting->failure && !base::caught([&] { waiting->failure = status.error(); }))
      waiting->failure.emplace(status.error().code(), "");
    if (--waiting->open != 0) return;
  }
  if (const Status submitted = base::caught([&] { return submit(waiting); }); !submitted)
    waiting->finish({}, submitted);
}

// Has the work start when all dependencies are complete, and whatever else counts as open.
void waitFor(const std::shared_ptr<Waiting>& waiting,
             std::span<const std::shared_ptr<Event>> dependencies) {
  {
    const std::lock_guard lock(waiting->mutex);
    // This call counts as one, so that the work does not start before all events are registered.
    waiting->open += dependencies.size() + 1;
  }
  for (const std::shared_ptr<Event>& dependency : dependencies)
    if (const Status registered = base::caught([&] {
          dependency->whenDone([waiting](const Status& status) { oneIsDone(waiting, status); });
        });
        !registered)
      oneIsDone(waiting, registered);
  oneIsDone(waiting, {});
}

}  // namespace

Result<std::shared_ptr<Event>> Execution::scheduleAfter(
    Claim claim, std::span<const std::shared_ptr<Event>> dependencies, uint64_t duration,
    DependentWork work, Scheduler& scheduler) {
  const std::shared_ptr<Waiting> waiting(new Waiting{shared_from_this(), std::move(claim),
                                                     std::move(work), duration, scheduler,
                                                     std::make_shared<Event>()});
  waitFor(waiting, dependencies);
  return waiting->event;
}

std::shared_ptr<Event> Execution::scheduleFenced(
    Claim claim, std::span<const std::shared_ptr<Event>> dependencies, base::Descriptor fence,
    DependentWork work, Scheduler& scheduler) {
  const auto event = std::make_shared<Event>(std::move(fence));
  const std::shared_ptr<Waiting> waiting(
      new Waiting{shared_from_this(), std::move(claim), std::move(work), 0, scheduler, event});
  // For the fence, and for this call.
  waiting->open = 2;
  // How the run itself has ended is what finishFenced() tells.
  const auto end = [waiting](const Status& /*status*/) {
    oneIsDone(waiting, {});
  };
  if (!base::caught([&]() -> Status {
        HEARTH_ASSIGN(base::Descriptor watched, event->deviceFence());
        HEARTH_ASSIGN(const auto ended, watchFence(std::move(watched)));
        ended->whenDone(end);
        return {};
      }))
    end({});
  waitFor(waiting, dependencies);
  oneIsDone(waiting, {});
  return event;
}

Status Execution::resetState() {
  HEARTH_ASSIGN(const Claim claimed, claim());
  if (states_.isOnDevice())
    for (auto& bound : bound_) bound.reset();
  return states_.reset();
}

Result<graph::Dimensions> Execution::outputShape(size_t index) const {
  if (index >= compilation_->outputCount())
    return fail(ErrorCode::kBadData, "There is no output {}; the model has {}.", index,
                compilation_->outputCount());
  const std::lock_guard lock(mutex_);
  if (isClaimedHere()) return fail(ErrorCode::kBadState, "A run of this execution is in flight.");
  if (index < outputShapes_.size()) return outputShapes_[index].dimensions;
  const graph::Operand& operand = compilation_->output(index);
  if (graph::isFullySpecified(operand)) return operand.dimensions;
  return fail(ErrorCode::kBadState, "The shape of output {} is known after a run only.", index);
}

Result<std::string_view> Execution::string(memory::StringHandle element) const {
  const std::lock_guard lock(mutex_);
  if (isClaimedHere()) return fail(ErrorCode::kBadState, "A run of this execution is in flight.");
  const auto found = strings_ != nullptr ? strings_->find(element) : std::nullopt;
  if (found) return *found;
  return fail(ErrorCode::kNotFound, "The last run has no string of the element {}.", element);
}

Statistics Execution::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace hearth::runtime
