// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/cut_model.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "drivers/cpu/cut_execution.h"
#include "drivers/cpu/dynamic_model.h"
#include "drivers/cpu/model_division.h"
#include "drivers/cpu/weights/weight_session.h"
#include "ops/specialized_model.h"

namespace hearth::cpu {
namespace {

void add(const hal::StartReport& part, bool isStateTelling, bool* hasState, hal::StartReport* sum) {
  // The whole has the worst state of its parts.
  if (isStateTelling && (!*hasState || (part.state != hal::StartReport::State::kWarm &&
                                        sum->state != hal::StartReport::State::kUncached))) {
    sum->state = part.state;
    sum->reason = part.reason;
    *hasState = true;
  }
  for (const auto& [kind, bytes] : part.packedBytes) sum->packedBytes[kind] += bytes;
  sum->repackedBytes += part.repackedBytes;
  sum->repairedBytes += part.repairedBytes;
  sum->mappedBytes += part.mappedBytes;
  sum->sharedBytes += part.sharedBytes;
  sum->hashedBytes += part.hashedBytes;
  sum->activationBytes += part.activationBytes;
  sum->shapes = std::max(sum->shapes, part.shapes);
  for (const std::string& family : part.routedAround)
    if (!std::ranges::contains(sum->routedAround, family)) sum->routedAround.push_back(family);
  for (const std::string& operation : part.slowOperations)
    if (!std::ranges::contains(sum->slowOperations, operation))
      sum->slowOperations.push_back(operation);
  if (part.tuning.state != hal::TuningReport::State::kOff) sum->tuning = part.tuning;
}

}  // namespace

CutModel::~CutModel() = default;

Result<std::shared_ptr<CutModel>> CutModel::create(std::shared_ptr<const graph::Model> model,
                                                   std::span<const graph::Dimensions> shapes,
                                                   std::shared_ptr<ModelFamily> family,
                                                   std::span<const uint32_t> numbers,
                                                   const PartLimits& limits) {
  HEARTH_ASSIGN(const ops::PartlySpecializedModel divided, ops::specializePartly(*model, shapes));
  if (divided.open.empty())
    return fail(ErrorCode::kUnsupported, "No shape of the model depends on values.");
  std::shared_ptr<CutModel> made(new CutModel());
  made->model_ = std::move(model);
  made->family_ = std::move(family);
  HEARTH_TRY(made->prepareParts(*divided.model, numbersOf(divided.operations, numbers),
                                divided.open, limits));
  return made;
}

Status CutModel::prepareParts(const graph::Model& divided, std::span<const uint32_t> numbers,
                              std::span<const uint32_t> open, const PartLimits& limits) {
  const graph::Subgraph& main = divided.main();
  slotOf_.resize(main.operands.size());
  for (uint32_t i = 0; i < main.inputs.size(); ++i)
    slots_[slotOf(divided, main.inputs[i])].input = i;
  for (uint32_t i = 0; i < main.outputs.size(); ++i)
    slots_[slotOf(divided, main.outputs[i])].output = i;
  const ModelDivision division = divideModel(main, open);
  if (!division.front.empty()) {
    const graph::StepModel part = graph::makeStepModel(divided, division.front);
    HEARTH_TRY(prepareFront(part, numbersOf(division.front, numbers)));
    frontArguments_ = argumentsOf(divided, part);
  }
  const graph::StepModel cut = graph::makeStepModel(divided, division.cut);
  HEARTH_ASSIGN(cut_,
                ops::Interpreter::create(cut.model, {.maxActivationBytes = maxActivationBytes(),
                                                     .threadPool = family_->pool()}));
  cutArguments_ = argumentsOf(divided, cut);
  if (division.rest.empty()) return {};
  const graph::StepModel part = graph::makeStepModel(divided, division.rest);
  isRestWorthKeeping_ = WeightSession::isWorthKeeping(*part.model);
  rest_ = DynamicModel::partOf(family_, part.model, numbersOf(division.rest, numbers), limits);
  restArguments_ = argumentsOf(divided, part);
  return {};
}

Status CutModel::prepareFront(const graph::StepModel& part, std::vector<uint32_t> numbers) {
  std::vector<graph::Dimensions> shapes;
  for (const uint32_t input : part.model->main().inputs)
    shapes.push_back(part.model->main().operands[input].dimensions);
  // Once more, for the subgraphs of IF and WHILE.
  HEARTH_ASSIGN(ops::SpecializedModel specialized, ops::specialize(*part.model, shapes));
  const size_t own = specialized.model->main().operations.size();
  for (size_t i = 0; i < specialized.operations.size(); ++i)
    if (i < own) specialized.operations[i] = numbers[specialized.operations[i]];
  isFrontWorthKeeping_ = WeightSession::isWorthKeeping(*specialized.model);
  HEARTH_ASSIGN(front_, family_->prepare(specialized.model, specialized.operations));
  frontBytes_ = front_->startReportSoFar().activationBytes;
  return {};
}

uint32_t CutModel::slotOf(const graph::Model& divided, uint32_t operand) {
  if (!slotOf_[operand]) {
    slotOf_[operand] = static_cast<uint32_t>(slots_.size());
    slots_.push_back({divided.main().operands[operand], {}, {}, false});
  }
  return *slotOf_[operand];
}

CutModel::Arguments CutModel::argumentsOf(const graph::Model& divided,
                                          const graph::StepModel& part) {
  Arguments arguments;
  for (const uint32_t input : part.inputs) {
    arguments.inputs.push_back(slotOf(divided, input));
    slots_[arguments.inputs.back()].isRead = true;
  }
  for (const uint32_t output : part.outputs) arguments.outputs.push_back(slotOf(divided, output));
  return arguments;
}

Result<std::unique_ptr<hal::Execution>> CutModel::createExecution(hal::Request request,
                                                                  hal::BoundRequest bound) {
  return cutExecution(shared_from_this(), std::move(request), std::move(bound));
}

Result<std::shared_ptr<hal::InterpretedModel>> CutModel::whole() {
  const std::lock_guard lock(mutex_);
  if (whole_ == nullptr) {
    HEARTH_ASSIGN(whole_, hal::prepareInterpreted(model_, family_->options(), family_->pool(),
                                                  "Shapes depend on values.", family_->saved()));
  }
  return whole_;
}

hal::StartReport CutModel::report(hal::StartReport (hal::PreparedModel::*reportOf)() const) const {
  hal::StartReport sum;
  sum.reason = "Nothing with weights is prepared before the first execution tells the shapes.";
  bool hasState = false;
  if (front_ != nullptr) add((*front_.*reportOf)(), isFrontWorthKeeping_, &hasState, &sum);
  if (rest_ != nullptr && rest_->isPrepared())
    add((*rest_.*reportOf)(), isRestWorthKeeping_, &hasState, &sum);
  return sum;
}

}  // namespace hearth::cpu
