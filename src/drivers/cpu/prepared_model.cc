// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/prepared_model.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/caught.h"
#include "base/log.h"
#include "base/trace.h"
#include "drivers/cpu/cpu_execution.h"
#include "drivers/cpu/plan/kernel_factory.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/plan/slow_operations.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/weights/packing_turn.h"
#include "hal/interpreted_model.h"
#include "hal/request_check.h"
#include "hal/start_reason.h"
#include "memory/sigbus_guard.h"
#include "ops/custom_operator.h"
#include "ops/operation.h"

namespace hearth::cpu {
namespace {

bool isOfShapes(const WeightPlace& place, const ShapeValues& values) {
  return place.operation == WeightPlace::kConstants
             ? values.operands.contains(place.role & ~WeightPlace::kWide)
             : values.operations.contains(place.operation);
}

constexpr char kChoicesFact[] = "hearth-cpu kernels";

// How many slow operations a start report names; `hearth inspect` names all.
constexpr size_t kMostReported = 100;

bool hasControlFlow(const graph::Model& model) {
  return std::ranges::any_of(model.main().operations, [](const graph::Operation& operation) {
    return operation.type == graph::OperationType::kIf ||
           operation.type == graph::OperationType::kWhile;
  });
}

bool overlap(std::span<const ExecutionContext::Buffer> inputs,
             std::span<const ExecutionContext::Buffer> outputs) {
  for (const ExecutionContext::Buffer& input : inputs)
    for (const ExecutionContext::Buffer& output : outputs) {
      const auto* const first = static_cast<const uint8_t*>(input.data);
      const auto* const second = static_cast<const uint8_t*>(output.data);
      if (first != nullptr && second != nullptr && std::less<>()(first, second + output.bytes) &&
          std::less<>()(second, first + input.bytes))
        return true;
    }
  return false;
}

}  // namespace

Result<std::shared_ptr<CpuPreparedModel>> CpuPreparedModel::create(
    std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
    std::shared_ptr<threads::ThreadPool> pool, std::shared_ptr<cache::SegmentStore> store,
    Keeping keeping) {
  base::TraceSpan span("start", "prepare");
  std::shared_ptr<CpuPreparedModel> prepared(new CpuPreparedModel());
  prepared->model_ = std::move(model);
  prepared->pool_ = std::move(pool);
  prepared->weights_ = std::make_shared<PackedWeights>();
  prepared->repair_.emplace(prepared->model_, prepared->weights_, prepared->pool_);
  prepared->setTuned(options.isTuned);
  if (keeping.keep != nullptr)
    prepared->whenChosen_ = [self = prepared.get(), keep = keeping.keep](const MeasuredChoices&) {
      keep(*self);
    };
  prepared->session_ =
      std::make_shared<WeightSession>(store, prepared->model_, prepared->weights_, options,
                                      static_cast<unsigned>(prepared->pool_->threadCount()));
  const bool isJustInTime = options.preparation == hal::Preparation::kJustInTime;
  prepared->session_->load(isJustInTime);
  const bool isWarm = prepared->session_->isWarm();
  if (isJustInTime || (isWarm && keeping.keep == nullptr)) {
    HEARTH_TRY(prepared->planAhead(options, !isWarm, std::move(keeping.keep)));
    return prepared;
  }
  {
    // Operators of the program may compile models themselves, so theirs are prepared without a
    // turn.
    std::optional<PackingTurn> turn;
    if (!ops::hasCustomOperations(*prepared->model_)) turn.emplace();
    HEARTH_TRY(prepared->planWhole(options));
  }
  // A model whose pools lost pages was packed from zeros: it fails and is not kept.
  HEARTH_TRY(hal::checkPoolsWhole(*prepared->model_));
  prepared->publish();
  prepared->populate();
  if (keeping.keep != nullptr)
    prepared->save_ =
        SaveQueue::post(keeping.token, std::move(store),
                        [self = prepared.get(), keep = std::move(keeping.keep)] { keep(*self); });
  return prepared;
}

Result<std::shared_ptr<CpuPreparedModel>> CpuPreparedModel::createSaved(
    SavedModel saved, const hal::PrepareOptions& options, std::shared_ptr<threads::ThreadPool> pool,
    std::function<void(const MeasuredChoices&)> whenChosen) {
  const base::TraceSpan span("start", "prepare");
  std::shared_ptr<CpuPreparedModel> prepared(new CpuPreparedModel());
  prepared->saved_ = std::make_shared<SavedSegments>(saved);
  prepared->model_ = std::move(saved.model);
  prepared->pool_ = std::move(pool);
  prepared->weights_ = std::move(saved.weights);
  prepared->repair_.emplace(prepared->model_, prepared->weights_, prepared->pool_);
  prepared->hasHoles_ = saved.hasHoles;
  prepared->referenceOnly_ = std::move(saved.referenceOnly);
  prepared->setTuned(options.isTuned);
  prepared->savedChoices_ = std::move(saved.choices);
  prepared->populate_ = std::move(saved.populate);
  prepared->whenChosen_ = std::move(whenChosen);
  prepared->report_.state = hal::StartReport::State::kWarm;
  prepared->report_.mappedBytes = saved.mappedBytes;
  HEARTH_TRY(prepared->planAhead(options, false, nullptr));
  return prepared;
}

Result<std::shared_ptr<CpuPreparedModel>> CpuPreparedModel::createBeside(
    std::shared_ptr<CpuPreparedModel> first, std::shared_ptr<const graph::Model> model,
    const ShapeValues& shapeValues, const hal::PrepareOptions& options,
    std::shared_ptr<threads::ThreadPool> pool, std::shared_ptr<SavedSegments> saved) {
  std::shared_ptr<CpuPreparedModel> prepared(new CpuPreparedModel());
  prepared->setOthersWeights(first->finishedWeights()->places(), std::move(model), shapeValues,
                             options, std::move(pool), std::move(saved));
  prepared->referenceOnly_ = first->referenceOnly();
  prepared->first_ = std::move(first);
  HEARTH_TRY(prepared->planOnOthersWeights(options));
  return prepared;
}

Result<std::shared_ptr<CpuPreparedModel>> CpuPreparedModel::createFromSaved(
    const SavedPart& part, std::shared_ptr<const graph::Model> model,
    const ShapeValues& shapeValues, const hal::PrepareOptions& options,
    std::shared_ptr<threads::ThreadPool> pool, std::shared_ptr<SavedSegments> saved) {
  std::shared_ptr<CpuPreparedModel> prepared(new CpuPreparedModel());
  prepared->setOthersWeights(part.places, std::move(model), shapeValues, options, std::move(pool),
                             std::move(saved));
  HEARTH_TRY(prepared->planOnOthersWeights(options));
  hal::StartReport& report = prepared->report_;
  report.packedBytes = prepared->weights_->packedBytes();
  const bool isWarm = report.packedBytes.empty();
  report.state = isWarm ? hal::StartReport::State::kWarm : hal::StartReport::State::kCold;
  if (!isWarm)
    report.reason =
        part.places.empty() ? hal::start_reason::kNotInCacheFiles : hal::start_reason::kPlanPartly;
  report.mappedBytes = part.mappedBytes;
  return prepared;
}

void CpuPreparedModel::setOthersWeights(const std::map<WeightPlace, PackedPlace>& places,
                                        std::shared_ptr<const graph::Model> model,
                                        const ShapeValues& shapeValues,
                                        const hal::PrepareOptions& options,
                                        std::shared_ptr<threads::ThreadPool> pool,
                                        std::shared_ptr<SavedSegments> saved) {
  saved_ = std::move(saved);
  model_ = std::move(model);
  pool_ = std::move(pool);
  // Private: packings of other models come with segments that the other one could not repair.
  weights_ = std::make_shared<PackedWeights>(true);
  repair_.emplace(model_, weights_, pool_);
  setTuned(options.isTuned);
  for (const auto& [place, packed] : places)
    if (!isOfShapes(place, shapeValues)) weights_->preset(place, packed);
  if (!places.empty()) weights_->setAllPreset();
}

Status CpuPreparedModel::planOnOthersWeights(const hal::PrepareOptions& options) {
  const uint64_t before = saved_ != nullptr ? saved_->replacements() : 0;
  HEARTH_TRY(planWhole(options));
  // A model is not packed from bytes that were lost meanwhile.
  if (saved_ == nullptr) return hal::checkPoolsWhole(*model_);
  HEARTH_TRY(saved_->replaceLost());
  if (saved_->replacements() != before)
    return fail(ErrorCode::kOpFailed, "Constants were lost while the model was prepared.");
  savedReplacements_ = before;
  return {};
}

CpuPreparedModel::~CpuPreparedModel() {
  stages_.reset();
  // The client may change the model's constants from now on.
  if (save_ != nullptr) save_->finish();
  if (ahead_ != nullptr) ahead_->end();
}

ModelParts CpuPreparedModel::parts() const {
  const std::lock_guard lock(mutex_);
  // What other subgraphs read is not known from the plan of the main one.
  const Plan* const plan = hasControlFlow(*model_) ? nullptr : &contexts_.plan();
  return {model_, plan, weights_.get(), referenceOnly_, savedChoices_, {}};
}

std::shared_ptr<const PackedWeights> CpuPreparedModel::finishedWeights() const {
  if (ahead_ != nullptr) ahead_->finish();
  return weights_;
}

Result<CpuPreparedModel::NewPlan> CpuPreparedModel::makePlan(const hal::PrepareOptions& options) {
  if (options.deadline.hasPassed())
    return fail(ErrorCode::kMissedDeadlinePersistent,
                "The deadline passes while the model is prepared.");
  const std::set<uint32_t> refused = referenceOnly();
  PlanBuilder builder(*model_, weights_.get(), refused, customs_,
                      {.maxArenaBytes = options.maxActivationBytes});
  HEARTH_TRY(builder.build());
  auto planned = std::make_unique<ContextPool::Planned>();
  planned->ownedConstants = builder.constants().takeCopies();
  // Computed once: which kernel an operation gets does not change its shapes.
  const bool isFirst = outputBytes_.empty();
  if (isFirst) {
    customs_ = builder.takeCustoms();
    repair_->setCustoms(customs_);
    for (uint32_t index : model_->main().outputs) {
      outputDimensions_.push_back(builder.tensor(index).dimensions);
      outputBytes_.push_back(tensorBytes(builder.tensor(index)));
    }
  }
  planned->plan = builder.takePlan();
  std::vector<std::string> slow = slowOperations(*model_, planned->plan);
  warnOfSlowOperations(slow);
  if (slow.size() > kMostReported) slow.resize(kMostReported);
  HEARTH_TRY(planArena(&planned->plan, options.maxActivationBytes));
  std::shared_ptr<const KernelChoices> choices = recalledChoices(planned->plan);
  const std::lock_guard lock(mutex_);
  report_.activationBytes = planned->plan.arenaBytes;
  report_.slowOperations = std::move(slow);
  if (builder.asksForTraits()) report_.routedAround = selfTest()->routedAround;
  return NewPlan{std::move(planned), std::move(choices)};
}

std::set<uint32_t> CpuPreparedModel::referenceOnly() const {
  const std::lock_guard lock(mutex_);
  return referenceOnly_;
}

bool CpuPreparedModel::addReferenceOnly(const std::vector<uint32_t>& operations) {
  const std::lock_guard lock(mutex_);
  const size_t before = referenceOnly_.size();
  referenceOnly_.insert(operations.begin(), operations.end());
  return referenceOnly_.size() != before;
}

Status CpuPreparedModel::planWhole(const hal::PrepareOptions& options) {
  // XNNPACK refuses an operation only when its operator is created: the model is then planned again
  // with the reference kernel for that operation.
  while (true) {
    HEARTH_ASSIGN(NewPlan made, makePlan(options));
    const Plan& plan = made.planned->plan;
    const auto kernels = std::make_shared<KernelFactory>(plan, pool_.get(), made.choices);
    if (Status built = kernels->makeAll(); !built) {
      if (!addReferenceOnly(kernels->refused())) return built;
      continue;
    }
    HEARTH_ASSIGN(auto context,
                  ExecutionContext::create(plan, kernels, ActivationMemory::of(*model_)));
    contexts_.setPlan(std::move(made.planned), std::move(context));
    return {};
  }
}

Status CpuPreparedModel::planAhead(const hal::PrepareOptions& options, bool packs,
                                   std::function<void(CpuPreparedModel&)> whenReady) {
  HEARTH_ASSIGN(NewPlan made, makePlan(options));
  const Plan& plan = made.planned->plan;
  ahead_ = std::make_shared<KernelFactory>(plan, pool_.get(), std::move(made.choices));
  const std::shared_ptr<ActivationMemory> memory = ActivationMemory::of(*model_);
  HEARTH_ASSIGN(auto context, ExecutionContext::create(plan, ahead_, memory));
  contexts_.setPlan(std::move(made.planned), std::move(context));
  hal::PrepareOptions later = options;
  later.deadline = {};
  packsAhead_ = packs;
  // Packing is worth all threads. Without it one thread is done before another would have started.
  const auto threads = packs ? static_cast<unsigned>(pool_->threadCount()) : 1;
  ahead_->makeAhead(
      threads, [this, later] { complete(later); },
      [this, memory, whenReady = std::move(whenReady)] {
        // Here, because clearing its pages would slow the first inference.
        memory->populate();
        populate();
        if (whenReady != nullptr) whenReady(*this);
      });
  return {};
}

void CpuPreparedModel::complete(const hal::PrepareOptions& options) {
  // A saved model names the operations that XNNPACK refuses; it refuses no others now.
  if (session_ == nullptr) return;
  const std::vector<uint32_t> refused = ahead_->refused();
  if (!refused.empty()) {
    Status replanned = base::caught([&] {
      addReferenceOnly(refused);
      return planWhole(options);
    });
    if (!replanned) {
      session_->giveUp(replanned.error());
      const std::lock_guard lock(mutex_);
      replanned_ = std::move(replanned);
      hasReplanFailed_ = true;
      return;
    }
  } else if (ahead_->hasFailed()) {
    // Executions that need those kernels get the error.
    return session_->giveUp(Error(ErrorCode::kOutOfMemory, "Not all is packed."));
  }
  if (const Status whole = hal::checkPoolsWhole(*model_); !whole)
    return session_->giveUp(whole.error());
  publish();
}

void CpuPreparedModel::publish() {
  session_->onCorrupt([weak = weak_from_this()](const cache::SegmentKey& key) {
    if (const auto self = weak.lock()) self->repair(key);
  });
  session_->publish();
}

void CpuPreparedModel::populate() {
  if (session_ != nullptr) session_->populate();
  if (populate_ != nullptr) populate_();
}

void CpuPreparedModel::setCacheProblem(std::string problem) {
  const std::lock_guard lock(mutex_);
  report_.cacheProblem = std::move(problem);
}

void CpuPreparedModel::repair(const cache::SegmentKey& key) {
  {
    const std::lock_guard lock(repairMutex_);
    repair_->noteWrong(key);
  }
  if (const Status repaired = repairWrong(); !repaired)
    base::logWarn("A model does not run until its wrong packed weights are replaced. {}",
                  repaired.error().toString());
}

Status CpuPreparedModel::repairWrong() {
  if (first_ != nullptr) return first_->repairWrong();
  std::unique_lock lock(repairMutex_);
  const Result<WeightRepair::Segments> repaired = repair_->replaceWrong(referenceOnly());
  if (!repaired)
    return fail(ErrorCode::kOpFailed,
                "Packed weights of the model are wrong in the store, and are not replaced: {}",
                repaired.error().message());
  lock.unlock();
  keepRepaired(*repaired);
  return {};
}

void CpuPreparedModel::keepRepaired(const WeightRepair::Segments& segments) {
  if (session_ != nullptr && !segments.empty()) session_->repaired(segments);
}

uint64_t CpuPreparedModel::lossesSoFar() const {
  return saved_ != nullptr ? saved_->lossesSoFar() : memory::lossCount();
}

Status CpuPreparedModel::replaceLosses() {
  if (first_ != nullptr) {
    const uint64_t losses = lossesSoFar();
    HEARTH_TRY(first_->replaceLosses());
    // Who replaced saved constants is not known: it may have been another shape's execution.
    if (saved_ != nullptr) contexts_.noteReplacement();
    checkedLosses_ = losses;
    return {};
  }
  // Lost bytes of the model's own pools cannot be replaced.
  if (saved_ == nullptr) HEARTH_TRY(hal::checkPoolsWhole(*model_));
  std::unique_lock lock(repairMutex_);
  const uint64_t losses = lossesSoFar();
  WeightRepair::Segments packed;
  if (saved_ != nullptr) {
    HEARTH_TRY(saved_->replaceLost());
    // Another part of the model may have replaced them.
    if (const uint64_t now = saved_->replacements(); now != savedReplacements_) {
      savedReplacements_ = now;
      contexts_.noteReplacement();
      const std::lock_guard report(mutex_);
      report_.reason = hal::start_reason::kSegmentCorrupt;
      report_.repairedBytes = saved_->replacedBytes();
    }
  } else {
    Result<WeightRepair::Segments> repaired = repair_->replaceLost(referenceOnly());
    if (!repaired)
      return fail(ErrorCode::kOpFailed,
                  "Packed weights of the model were lost while it was in use, since their file was "
                  "truncated, changed or cannot be read. {}",
                  repaired.error().message());
    packed = *std::move(repaired);
  }
  checkedLosses_ = losses;
  lock.unlock();
  keepRepaired(packed);
  return {};
}

uint64_t CpuPreparedModel::replacements() {
  const uint64_t repairs = PackedSegment::allRepairs();
  if (repairs != seenRepairs_) [[unlikely]] {
    const std::lock_guard lock(mutex_);
    const uint64_t own = weights_->repairs();
    if (own != ownRepairs_) contexts_.noteReplacement();
    ownRepairs_ = own;
    seenRepairs_ = repairs;
  }
  return contexts_.replacements();
}

void CpuPreparedModel::checkInChild() {
  process_ = base::ForkGate::generation();
  // Only the parent has the threads that build kernels ahead, so this thread does the rest of their
  // work: building kernels, and registering for repairs in publish().
  if (ahead_ != nullptr) ahead_->finish();
  // A saved model has nothing to pack again from; SavedSegments replaces its segments.
  if (saved_ == nullptr) {
    const std::lock_guard lock(repairMutex_);
    repair_->noteKnownWrong();
  }
  if (session_ != nullptr) session_->checkFound();
  if (saved_ != nullptr) saved_->checkFound();
}

Result<std::unique_ptr<hal::Execution>> CpuPreparedModel::createExecution(hal::Request request) {
  HEARTH_ASSIGN(hal::BoundRequest bound, hal::checkRequest(model_->main(), request));
  // The plan needs every graph input; the interpreter can run without some.
  for (const ops::RunArgument& input : bound.inputs) {
    if (input.isPresent) continue;
    if (hasHoles_) return fail(ErrorCode::kOpFailed, "An input is omitted that the model needs.");
    HEARTH_ASSIGN(std::shared_ptr<hal::PreparedModel> interpreted,
                  hal::prepareInterpreted(model_, {}, pool_, "an input is omitted", saved_));
    return interpreted->createExecution(std::move(request));
  }
  return cpuExecution(shared_from_this(), std::move(bound));
}

hal::StartReport CpuPreparedModel::startReport() const {
  if (first_ != nullptr) return besideReport(first_->startReport());
  if (ahead_ != nullptr) ahead_->finish();
  if (save_ != nullptr) save_->finish();
  return reportNow();
}

hal::StartReport CpuPreparedModel::startReportSoFar() const {
  if (first_ != nullptr) return besideReport(first_->startReportSoFar());
  // Before just-in-time packing ends the report would say little, so it waits for that.
  return packsAhead_ ? startReport() : reportNow();
}

// Beside another model the weights are as the other one found or packed them.
hal::StartReport CpuPreparedModel::besideReport(hal::StartReport report) const {
  const std::lock_guard lock(mutex_);
  report.activationBytes = report_.activationBytes;
  report.routedAround = report_.routedAround;
  report.slowOperations = report_.slowOperations;
  report.tuning = report_.tuning;
  return report;
}

hal::StartReport CpuPreparedModel::reportNow() const {
  hal::StartReport report;
  {
    const std::lock_guard lock(mutex_);
    report = report_;
  }
  if (session_ != nullptr) session_->describe(&report);
  return report;
}

Result<std::unique_ptr<ExecutionContext>> CpuPreparedModel::takeContext(
    std::span<const ExecutionContext::Buffer> inputs,
    std::span<const ExecutionContext::Buffer> outputs) {
  if (hasReplanFailed_) [[unlikely]] {
    const std::lock_guard lock(mutex_);
    HEARTH_TRY(replanned_);
  }
  if (std::unique_ptr<ExecutionContext> idle = contexts_.takeIdle(inputs, outputs)) return idle;
  // The first context's kernels pack the weights: a second context waits until they are built.
  if (ahead_ != nullptr && !ahead_->isComplete()) {
    ahead_->finish();
    return takeContext(inputs, outputs);
  }
  Result<std::unique_ptr<ExecutionContext>> made = contexts_.make(pool_.get());
  if (made) return made;
  if (std::unique_ptr<ExecutionContext> idle = contexts_.takeIdle()) return idle;
  return made;
}

Status CpuPreparedModel::run(std::span<const ExecutionContext::Buffer> inputs,
                             std::span<const ExecutionContext::Buffer> outputs,
                             const base::Deadline& deadline) {
  CpuPreparedModel& keeper = first_ != nullptr ? *first_ : *this;
  if (keeper.process_.load(std::memory_order_relaxed) != base::ForkGate::generation())
    keeper.checkInChild();
  // The execution fails rather than compute with wrong weights.
  if (keeper.repair_->hasWrong()) HEARTH_TRY(repairWrong());
  while (true) {
    const uint64_t replaced = replacements();
    Status status = runOnce(inputs, outputs, deadline);
    if (lossesSoFar() != checkedLosses_) HEARTH_TRY(replaceLosses());
    if (replacements() == replaced) return status;
    // The execution may have read wrong weights. It is repeated, unless it overwrote inputs.
    if (overlap(inputs, outputs))
      return fail(ErrorCode::kOpFailed,
                  "Packed weights were lost during the computation and are packed again, but an "
                  "output has overwritten an input; start again with new inputs.");
  }
}

Status CpuPreparedModel::runOnce(std::span<const ExecutionContext::Buffer> inputs,
                                 std::span<const ExecutionContext::Buffer> outputs,
                                 const base::Deadline& deadline) {
  while (true) {
    HEARTH_ASSIGN(std::unique_ptr<ExecutionContext> context, takeContext(inputs, outputs));
    KernelStages* const stages = stagesOf(*context);
    Status status = stages != nullptr ? stages->run(*context, inputs, outputs, deadline)
                                      : context->run(inputs, outputs, pool_.get(), deadline);
    // XNNPACK refused an operation whose kernel was built late: the execution is repeated on the
    // plan without it, which finish() waits for.
    const bool isRefused =
        !status && status.error().code() == ErrorCode::kUnsupported && ahead_ != nullptr;
    if (isRefused) ahead_->finish();
    executions_.fetch_add(1, std::memory_order_relaxed);
    const bool isInForce = !isRefused || contexts_.isInForce(*context);
    // A context that lacked memory is dropped, so that the next execution tries anew.
    const bool lacksMemory =
        !status && (status.error().code() == ErrorCode::kOutOfMemory ||
                    status.error().code() == ErrorCode::kResourceExhaustedTransient);
    if (!lacksMemory) contexts_.giveBack(std::move(context));
    if (!isRefused || isInForce) return status;
  }
}

std::shared_ptr<const KernelChoices> CpuPreparedModel::recalledChoices(const Plan& plan) {
  if (!isTuned_) return nullptr;
  const std::vector<uint8_t> bytes =
      session_ != nullptr ? session_->recall(kChoicesFact) : savedChoices_;
  const auto measured = MeasuredChoices::parse(bytes, plan.nodes.size());
  if (!measured || measured->threads != pool_->threadCount()) return nullptr;
  for (size_t node = 0; node < plan.nodes.size(); ++node)
    if (measured->choices[node].which == KernelChoice::Which::kOther &&
        plan.nodes[node].createOther == nullptr)
      return nullptr;
  const std::lock_guard lock(mutex_);
  report_.tuning = {hal::TuningReport::State::kRecalled, 0, measured->changedNodes(),
                    measured->quickTime, measured->chosenTime};
  savedChoices_ = bytes;
  return std::make_shared<const KernelChoices>(measured->choices);
}

void CpuPreparedModel::setTuned(bool isTuned) {
  isTuned_ = isTuned;
  if (isTuned) report_.tuning.state = hal::TuningReport::State::kMeasuring;
}

KernelStages* CpuPreparedModel::stagesOf(const ExecutionContext& context) {
  if (!isTuned_ || context.kernels().choices() != nullptr) return nullptr;
  if (ahead_ != nullptr && !ahead_->isComplete()) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!contexts_.isFirstStage(context)) return nullptr;
  if (stages_ == nullptr)
    stages_ = std::make_unique<KernelStages>(
        context.plan(), pool_.get(), context.memory(),
        KernelStages::Handlers{
            [this](std::unique_ptr<ExecutionContext> first, const MeasuredChoices& measured) {
              beginSecondStage(std::move(first), measured);
            },
            [this](const MeasuredChoices& measured) {
              keepChoices(measured);
            }});
  return stages_.get();
}

void CpuPreparedModel::beginSecondStage(std::unique_ptr<ExecutionContext> context,
                                        const MeasuredChoices& measured) {
  contexts_.beginSecondStage(std::move(context));
  const std::lock_guard lock(mutex_);
  report_.tuning = {hal::TuningReport::State::kMeasured, executions_, measured.changedNodes(),
                    measured.quickTime, measured.chosenTime};
}

void CpuPreparedModel::keepChoices(const MeasuredChoices& measured) {
  {
    const std::lock_guard lock(mutex_);
    savedChoices_ = measured.encoded();
  }
  if (session_ != nullptr) {
    session_->publishAgain();
    session_->remember(kChoicesFact, measured.encoded());
  }
  // Not before the files are written without them.
  if (save_ != nullptr) save_->finish();
  if (whenChosen_ != nullptr) whenChosen_(measured);
}

}  // namespace hearth::cpu
