// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/dynamic_model.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/trace.h"
#include "drivers/cpu/cpu_execution.h"
#include "drivers/cpu/model_division.h"
#include "hal/request_check.h"
#include "ops/specialized_model.h"

namespace hearth::cpu {
namespace {

// How many shapes are kept prepared: a program alternates between a few. Each has activation memory
// of its own.
constexpr size_t kKeptShapes = 8;

// By what factor fewer shapes are kept for each part behind a division.
constexpr size_t kFewerShapes = 4;

// Whether the dimensions that a request gives an output, 0 for those that it leaves open, agree
// with those that the inputs give it.
bool areCompatible(const graph::Dimensions& given, const graph::Dimensions& inferred) {
  if (given.empty()) return true;
  if (given.size() != inferred.size()) return false;
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i] != 0 && given[i] != inferred[i]) return false;
  return true;
}

}  // namespace

DynamicModel::DynamicModel(std::shared_ptr<ModelFamily> family,
                           std::shared_ptr<const graph::Model> model, std::vector<uint32_t> numbers,
                           const PartLimits& limits)
    : family_(std::move(family)),
      model_(std::move(model)),
      numbers_(std::move(numbers)),
      limits_(limits),
      members_(limits.keptShapes) {}

std::shared_ptr<DynamicModel> DynamicModel::partOf(std::shared_ptr<ModelFamily> family,
                                                   std::shared_ptr<const graph::Model> part,
                                                   std::vector<uint32_t> numbers,
                                                   const PartLimits& limits) {
  return std::shared_ptr<DynamicModel>(
      new DynamicModel(std::move(family), std::move(part), std::move(numbers), limits));
}

Result<std::shared_ptr<DynamicModel>> DynamicModel::create(
    std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
    std::shared_ptr<threads::ThreadPool> pool, std::shared_ptr<cache::SegmentStore> store,
    SavedFamily saved, FamilyKeeping keeping) {
  const auto family =
      std::make_shared<ModelFamily>(options, std::move(pool), std::move(store), std::move(saved),
                                    std::move(keeping), model->constantBytes.size());
  std::vector<uint32_t> numbers(model->main().operations.size());
  std::ranges::iota(numbers, 0u);
  const std::shared_ptr<DynamicModel> made =
      partOf(family, std::move(model), std::move(numbers), {0, kKeptShapes});
  HEARTH_TRY(made->prepareExpected(options));
  family->endPreparation();
  return made;
}

Status DynamicModel::prepareExpected(const hal::PrepareOptions& options) {
  const graph::Subgraph& main = model_->main();
  Shapes shapes;
  for (const uint32_t input : main.inputs) {
    const graph::Operand& operand = main.operands[input];
    if (graph::isFullySpecified(operand))
      shapes.push_back(operand.dimensions);
    else if (shapes.size() < options.expectedInputs.size())
      shapes.push_back(options.expectedInputs[shapes.size()]);
    else
      return {};
  }
  auto prepared = prepareFor(shapes);
  if (prepared) return {};
  // Executions may have shapes that can be planned: converters write 1 for dimensions that they do
  // not know, which some models cannot take.
  if (!ops::hasUnknownInputs(*model_) || !hal::isForInterpreter(prepared.error()))
    return std::unexpected(std::move(prepared.error()));
  HEARTH_TRY(interpretedModel(prepared.error()));
  return {};
}

bool DynamicModel::isPrepared() const {
  return members_.size() != 0;
}

Result<DynamicModel::Prepared> DynamicModel::prepareFor(const Shapes& shapes) {
  if (std::optional<Prepared> known = members_.find(shapes)) return *std::move(known);
  if (std::optional<Error> refusal = members_.refusal(shapes))
    return std::unexpected(*std::move(refusal));
  auto made = makeFor(shapes);
  if (!made && hal::isForInterpreter(made.error())) {
    base::logInfo("Shapes of a model are interpreted. {}", made.error().toString());
    members_.refuse(shapes, made.error());
  }
  return made;
}

Result<DynamicModel::Prepared> DynamicModel::makeFor(const Shapes& shapes) {
  // Not under the lock: it takes long and may call operators of the program. Two threads that meet
  // the same new shapes at once both prepare for them, and one of the results is dropped.
  const base::TraceSpan span("start", "prepare shapes");
  Prepared prepared;
  auto planned = plan(shapes);
  if (planned) {
    prepared.planned = *std::move(planned);
  } else {
    if (planned.error().code() != ErrorCode::kUnsupported || limits_.depth == kMostDivisions)
      return std::unexpected(std::move(planned.error()));
    auto divided = CutModel::create(model_, shapes, family_, numbers_, restLimits());
    // What hinders the plan of the whole is the better reason.
    if (!divided)
      return std::unexpected(hal::isForInterpreter(divided.error()) ? std::move(planned.error())
                                                                    : std::move(divided.error()));
    prepared.divided = *std::move(divided);
  }
  return members_.keep(shapes, std::move(prepared));
}

PartLimits DynamicModel::restLimits() const {
  // There is a rest for each tuple of shapes, and behind it perhaps another one.
  const size_t kept = ops::hasUnknownInputs(*model_)
                          ? std::max<size_t>(1, limits_.keptShapes / kFewerShapes)
                          : limits_.keptShapes;
  return {limits_.depth + 1, kept};
}

Result<std::shared_ptr<CpuPreparedModel>> DynamicModel::plan(const Shapes& shapes) {
  HEARTH_ASSIGN(ops::SpecializedModel specialized, ops::specialize(*model_, shapes));
  const size_t own = specialized.model->main().operations.size();
  for (size_t i = 0; i < own; ++i) specialized.operations[i] = numbers_[specialized.operations[i]];
  return family_->prepare(std::move(specialized.model), specialized.operations);
}

Result<std::unique_ptr<hal::Execution>> DynamicModel::createExecution(hal::Request request) {
  HEARTH_ASSIGN(hal::BoundRequest bound, hal::checkRequest(model_->main(), request));
  Shapes shapes;
  shapes.reserve(bound.inputs.size());
  for (const ops::RunArgument& input : bound.inputs) {
    if (!input.isPresent)
      return interpret(std::move(request), Error(ErrorCode::kUnsupported, "An input is omitted."));
    shapes.push_back(input.dimensions);
  }
  auto prepared = prepareFor(shapes);
  if (!prepared) {
    if (hal::isForInterpreter(prepared.error()))
      return interpret(std::move(request), prepared.error());
    return std::unexpected(std::move(prepared.error()));
  }
  if (prepared->divided != nullptr)
    return prepared->divided->createExecution(std::move(request), std::move(bound));
  // The interpreter says which dimension of an output the request has wrong.
  for (size_t i = 0; i < bound.outputs.size(); ++i)
    if (!areCompatible(bound.outputs[i].dimensions, prepared->planned->outputDimensions()[i]))
      return interpret(std::move(request),
                       Error(ErrorCode::kBadData, "The request gives an output another shape."));
  return cpuExecution(std::move(prepared->planned), std::move(bound));
}

Result<std::shared_ptr<hal::InterpretedModel>> DynamicModel::interpretedModel(const Error& reason) {
  std::shared_ptr<hal::InterpretedModel> interpreted;
  {
    const std::lock_guard lock(mutex_);
    interpreted = interpreted_;
  }
  if (interpreted == nullptr) {
    HEARTH_ASSIGN(interpreted, hal::prepareInterpreted(model_, family_->options(), family_->pool(),
                                                       reason.toString(), family_->saved()));
    const std::lock_guard lock(mutex_);
    interpreted_ = interpreted;
  }
  return interpreted;
}

Result<std::unique_ptr<hal::Execution>> DynamicModel::interpret(hal::Request request,
                                                                const Error& reason) {
  HEARTH_ASSIGN(const std::shared_ptr<hal::InterpretedModel> interpreted, interpretedModel(reason));
  return interpreted->createExecution(std::move(request));
}

hal::StartReport DynamicModel::report(hal::StartReport (hal::PreparedModel::*reportOf)()
                                          const) const {
  hal::StartReport report;
  const std::optional<Error> refusal = members_.lastRefusal();
  report.reason =
      refusal ? refusal->toString() : "The shapes of the inputs are known only at run time.";
  // It may wait.
  const Prepared first = members_.first().value_or(Prepared{});
  if (first.planned != nullptr) report = (*first.planned.*reportOf)();
  if (first.divided != nullptr) report = first.divided->report(reportOf);
  if (ops::hasUnknownInputs(*model_))
    report.shapes = std::max(report.shapes, static_cast<uint32_t>(members_.size()));
  report.cacheProblem = family_->cacheProblem();
  return report;
}

hal::StartReport DynamicModel::startReport() const {
  family_->finishSaves();
  return report(&hal::PreparedModel::startReport);
}

hal::StartReport DynamicModel::startReportSoFar() const {
  return report(&hal::PreparedModel::startReportSoFar);
}

}  // namespace hearth::cpu
