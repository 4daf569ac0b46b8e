// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/dynamic_model.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "base/caught.h"
#include "base/format.h"
#include "base/trace.h"
#include "hal/request_check.h"

namespace hearth::vulkan {
namespace {

// What unknown dimensions of a trial become: the first one of an input, which mostly counts a
// batch, and the others. Some models take sides of 224 only; less is better where it will do, since
// there may be many dimensions.
struct TrialSizes {
  uint32_t first;
  uint32_t others;
};
constexpr TrialSizes kTrials[] = {{1, 64}, {1, 1}, {2, 28}, {2, 224}};

bool hasUnknownRank(const graph::Operand& operand) {
  return operand.dimensions.empty() && !graph::isFullySpecified(operand);
}

// Whether an operation of a specialised model computes a tensor without elements, as that of a
// window that is larger than a small image: its dimensions stay unknown. The GPU computes none,
// whatever it takes of other shapes.
bool hasEmptyResults(const graph::Subgraph& main) {
  return std::ranges::any_of(main.operations, [&](const graph::Operation& operation) {
    return std::ranges::any_of(operation.outputs, [&](uint32_t output) {
      return !graph::isFullySpecified(main.operands[output]);
    });
  });
}

// The dimensions of an argument that the model leaves open, as somebody gives them.
graph::Dimensions completed(const graph::Operand& operand, const graph::Dimensions& given) {
  graph::Dimensions dimensions = operand.dimensions.empty() ? given : operand.dimensions;
  for (size_t i = 0; i < dimensions.size() && i < given.size(); ++i)
    if (dimensions[i] == 0) dimensions[i] = given[i];
  return dimensions;
}

}  // namespace

Result<ops::SpecializedModel> specializeForTrial(const graph::Model& model) {
  const graph::Subgraph& main = model.main();
  std::optional<Error> problem;
  for (const auto& [first, others] : kTrials) {
    std::vector<graph::Dimensions> shapes;
    for (const uint32_t index : main.inputs) {
      const graph::Operand& operand = main.operands[index];
      if (hasUnknownRank(operand))
        return fail(ErrorCode::kUnsupported, "The GPU driver has no inputs of unknown rank.");
      graph::Dimensions dimensions = operand.dimensions;
      for (size_t i = 0; i < dimensions.size(); ++i)
        if (dimensions[i] == 0) dimensions[i] = i == 0 ? first : others;
      shapes.push_back(std::move(dimensions));
    }
    auto specialized = ops::specialize(model, shapes);
    if (specialized && hasEmptyResults(specialized->model->main()))
      specialized = fail(ErrorCode::kUnsupported, "A tensor has no elements in a trial.");
    if (specialized) return specialized;
    if (!problem) problem = std::move(specialized.error());
  }
  return std::unexpected(*std::move(problem));
}

// Of kKeptShapes tuples of shapes each has activation memory of its own.
DynamicModel::DynamicModel(OpenGpu open, std::shared_ptr<const graph::Model> model,
                           const hal::PrepareOptions& options, hal::Cache cache)
    : open_(std::move(open)),
      model_(std::move(model)),
      options_(options),
      files_(cache.modelFiles.empty() && cache.dataFiles.empty()
                 ? nullptr
                 : std::make_shared<TunedFiles>(std::move(cache))),
      members_(kKeptShapes) {}

Result<std::shared_ptr<DynamicModel>> DynamicModel::create(
    OpenGpu open, std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
    hal::Cache cache) {
  std::shared_ptr<DynamicModel> made(
      new DynamicModel(std::move(open), std::move(model), options, std::move(cache)));
  HEARTH_TRY(made->prepareExpected());
  // Without a plan, too: the next start has the model.
  if (made->files_ != nullptr && made->members_.size() == 0) made->save();
  return made;
}

Result<std::shared_ptr<DynamicModel>> DynamicModel::createSaved(OpenGpu open,
                                                                const hal::PrepareOptions& options,
                                                                SavedFamily saved,
                                                                hal::Cache cache) {
  for (const SavedPipeline& pipeline : saved.pipelines)
    HEARTH_TRY(open.pipelines->restore(pipeline));
  std::shared_ptr<DynamicModel> made(
      new DynamicModel(std::move(open), std::move(saved.model), options, std::move(cache)));
  made->isSaved_ = true;
  made->saved_ = std::move(saved.members);
  HEARTH_TRY(made->prepareExpected());
  return made;
}

// Without expected shapes it is only seen whether the GPU runs the operations.
Status DynamicModel::prepareExpected() {
  const graph::Subgraph& main = model_->main();
  Shapes shapes;
  for (size_t i = 0; i < main.inputs.size(); ++i) {
    const graph::Operand& operand = main.operands[main.inputs[i]];
    if (graph::isFullySpecified(operand)) {
      shapes.push_back(operand.dimensions);
    } else if (i < options_.expectedInputs.size()) {
      shapes.push_back(options_.expectedInputs[i]);
    } else {
      // Of a part of a divided model less may be known than of the whole, for which
      // supportedOperations() has found a trial. Executions tell then what runs here. In a trial
      // the inputs of a part may also be far larger than they ever are.
      if (isSaved_) return {};
      const auto trial = specializeForTrial(*model_);
      return trial ? checkPlan(open_, *trial->model) : Status();
    }
  }
  HEARTH_TRY(prepareFor(shapes));
  return {};
}

Result<DynamicModel::Member> DynamicModel::prepareFor(const Shapes& shapes) {
  if (std::optional<Member> known = members_.find(shapes)) return *std::move(known);
  if (std::optional<Error> refusal = members_.refusal(shapes))
    return std::unexpected(*std::move(refusal));
  bool isSaved = false;
  auto made = makeFor(shapes, &isSaved);
  if (!made) {
    if (hal::isForInterpreter(made.error())) members_.refuse(shapes, made.error());
    return made;
  }
  Member member = members_.keep(shapes, *std::move(made));
  if (files_ != nullptr && member->isTunable(options_) && !member->isTuned())
    rewriteWhenMeasured(*open_.tuner, files_);
  if (!isSaved && files_ != nullptr) save();
  return member;
}

Result<DynamicModel::Member> DynamicModel::makeFor(const Shapes& shapes, bool* isSaved) {
  const base::TraceSpan span("start", "prepare shapes");
  std::optional<FamilyMember> saved;
  {
    const std::lock_guard lock(saveMutex_);
    const auto found = std::ranges::find(saved_, shapes, &FamilyMember::shapes);
    if (found != saved_.end()) saved = *found;
  }
  *isSaved = saved.has_value();
  if (saved)
    return VulkanPreparedModel::createSavedMember(open_, *std::move(saved), options_, constants_);
  HEARTH_ASSIGN(ops::SpecializedModel specialized, ops::specialize(*model_, shapes));
  HEARTH_ASSIGN(Member made,
                VulkanPreparedModel::createMember(open_, std::move(specialized.model),
                                                  model_->main(), options_, constants_));
  const std::lock_guard lock(saveMutex_);
  ++lowered_;
  return made;
}

// Lets the products of a plan that was made before they were measured be in the parts that were
// found.
void DynamicModel::useMeasured(FamilyMember* member) const {
  if (member->isTuned || open_.tuner == nullptr || !options_.isTuned ||
      open_.gpu->facts().type == VK_PHYSICAL_DEVICE_TYPE_CPU)
    return;
  Plan plan = member->plan;
  if (!open_.tuner->choose(open_.gpu->facts(), &plan)) return;
  for (const PipelineKey& key : pipelinesOf(plan))
    if (!open_.pipelines->find(key)) return;
  member->plan = std::move(plan);
  member->isTuned = true;
}

void DynamicModel::save() {
  const std::lock_guard lock(saveMutex_);
  if (saved_.size() == kKeptShapes) return;
  std::vector<FamilyMember> members = saved_;
  for (const auto& [shapes, member] : members_.all())
    if (members.size() < kKeptShapes &&
        !std::ranges::contains(members, shapes, &FamilyMember::shapes))
      members.push_back(member->asMember(shapes));
  for (FamilyMember& member : members) useMeasured(&member);
  const std::lock_guard writing(files_->mutex);
  const Status saved = base::caught([&] {
    return saveFamily(*model_, members, *open_.pipelines, open_.gpu->facts(), files_->files);
  });
  cacheProblem_ = saved ? "" : saved.error().toString();
  if (saved) saved_ = std::move(members);
}

Result<DynamicModel::Shapes> DynamicModel::shapesOf(const hal::Request& request) const {
  const graph::Subgraph& main = model_->main();
  // What lies on the GPU is checked by the member that runs.
  hal::Request ofHost = request;
  for (auto* arguments : {&ofHost.inputs, &ofHost.outputs})
    for (hal::Argument& argument : *arguments)
      if (argument.kind == hal::Argument::Kind::kBuffer)
        argument.kind = hal::Argument::Kind::kNoValue;
  HEARTH_ASSIGN(const hal::BoundRequest bound, hal::checkRequest(main, ofHost));
  Shapes shapes;
  for (size_t i = 0; i < bound.inputs.size(); ++i) {
    graph::Dimensions dimensions = bound.inputs[i].dimensions;
    if (request.inputs[i].kind == hal::Argument::Kind::kBuffer) {
      const std::shared_ptr<DeviceTensor> tensor = open_.tensors->find(request.inputs[i].token);
      if (tensor == nullptr)
        return fail(ErrorCode::kBadData, "The buffer token {} of input {} is unknown.",
                    request.inputs[i].token, i);
      graph::Operand operand = main.operands[main.inputs[i]];
      operand.dimensions = std::move(dimensions);
      dimensions = completed(operand, tensor->dimensions());
    } else if (!bound.inputs[i].isPresent) {
      return fail(ErrorCode::kUnsupported, "An input is omitted.");
    }
    shapes.push_back(std::move(dimensions));
  }
  return shapes;
}

Result<std::unique_ptr<hal::Execution>> DynamicModel::createExecution(hal::Request request) {
  auto shapes = shapesOf(request);
  if (!shapes && shapes.error().code() == ErrorCode::kUnsupported)
    return interpret(std::move(request), shapes.error());
  if (!shapes) return std::unexpected(std::move(shapes.error()));
  auto member = prepareFor(*shapes);
  if (member) return (*member)->createExecution(std::move(request));
  if (hal::isForInterpreter(member.error())) return interpret(std::move(request), member.error());
  return std::unexpected(std::move(member.error()));
}

Result<std::unique_ptr<hal::Execution>> DynamicModel::interpret(hal::Request request,
                                                                const Error& reason) {
  std::shared_ptr<hal::InterpretedModel> interpreted;
  {
    const std::lock_guard lock(mutex_);
    interpreted = interpreted_;
  }
  if (interpreted == nullptr) {
    HEARTH_ASSIGN(interpreted,
                  hal::prepareInterpreted(model_, options_, nullptr, reason.toString()));
    const std::lock_guard lock(mutex_);
    interpreted_ = interpreted;
  }
  return interpreted->createExecution(std::move(request));
}

Result<uint64_t> DynamicModel::argumentBytes(bool isInput, uint32_t index,
                                             const graph::Dimensions& wanted) const {
  const graph::Subgraph& main = model_->main();
  const std::vector<uint32_t>& indices = isInput ? main.inputs : main.outputs;
  const char* const role = isInput ? "input" : "output";
  if (index >= indices.size())
    return fail(ErrorCode::kBadData, "There is no {} {}; the model has {}.", role, index,
                indices.size());
  graph::Operand operand = main.operands[indices[index]];
  if (graph::isScalar(operand.type))
    return fail(ErrorCode::kUnsupported, "The {} {} is no tensor.", role, index);
  if (!mayBeSame(operand.dimensions, wanted))
    return fail(ErrorCode::kBadData, "The {} {} has the dimensions {}, not {}.", role, index,
                graph::describeDimensions(operand.dimensions), graph::describeDimensions(wanted));
  operand.dimensions = completed(operand, wanted);
  if (!graph::isFullySpecified(operand))
    return fail(ErrorCode::kUnsupported, "The {} {} has the dimensions {}, which are not complete.",
                role, index, graph::describeDimensions(operand.dimensions));
  return graph::byteSize(operand);
}

hal::StartReport DynamicModel::startReport() const {
  hal::StartReport report;
  if (const std::optional<Member> first = members_.first()) report = (*first)->startReport();
  const std::optional<Error> refusal = members_.lastRefusal();
  if (refusal) {
    report.state = hal::StartReport::State::kUncached;
    report.reason = refusal->toString();
  } else if (members_.size() == 0) {
    report.reason = "The shapes of the inputs are known only at run time.";
  }
  report.shapes = std::max(report.shapes, static_cast<uint32_t>(members_.size()));
  if (files_ == nullptr) return report;
  const std::lock_guard lock(saveMutex_);
  report.cacheProblem = cacheProblem_;
  if (refusal || !cacheProblem_.empty()) return report;
  const bool isWarm = isSaved_ && lowered_ == 0;
  report.state = isWarm ? hal::StartReport::State::kWarm : hal::StartReport::State::kCold;
  if (isWarm)
    report.reason.clear();
  else if (isSaved_)
    report.reason =
        base::formatText("the compilation cache had no plan for {} of its shapes", lowered_);
  else
    report.reason = "it was not in the compilation cache";
  return report;
}

}  // namespace hearth::vulkan
