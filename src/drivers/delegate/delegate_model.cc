// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/delegate_model.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "drivers/delegate/call_limit.h"
#include "hal/request_check.h"
#include "ops/specialized_model.h"

namespace hearth::drivers::delegate {
namespace {

// Graphs that are kept for shapes that come back. Each has a delegate of its own, and NPUs have
// little memory.
constexpr size_t kMostVariants = 4;

uint64_t nanosecondsSince(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
}

SharedGraph shared(std::unique_ptr<OfferedGraph> graph, std::shared_ptr<VendorLibrary> library) {
  return {graph.release(), [held = std::move(library)](OfferedGraph* ended) {
            const std::lock_guard lock(held->mutex());
            delete ended;
          }};
}

class DelegateExecution final : public hal::Execution {
 public:
  DelegateExecution(std::shared_ptr<DelegateModel> model, SharedGraph graph,
                    const std::vector<graph::Dimensions>& outputs, hal::BoundRequest request)
      : model_(std::move(model)), graph_(std::move(graph)), request_(std::move(request)) {
    for (const graph::Dimensions& dimensions : outputs) shapes_.push_back({dimensions, true});
    for (const ops::RunArgument& input : request_.inputs) inputs_.push_back(input.data);
    for (const ops::RunArgument& output : request_.outputs)
      outputs_.push_back(output.isPresent ? output.data : nullptr);
  }

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    const auto start = std::chrono::steady_clock::now();
    hal::ExecutionResult result;
    if (deadline.hasPassed()) {
      result.status = fail(ErrorCode::kMissedDeadlineTransient,
                           "The deadline has passed before the execution.");
      return result;
    }
    result.outputShapes = shapes_;
    if (!fitOutputs(&result)) return result;
    const std::lock_guard lock(model_->library().mutex());
    const auto begin = std::chrono::steady_clock::now();
    result.status = graph_->compute(inputs_, outputs_);
    const uint64_t onDevice = nanosecondsSince(begin);
    if (result.status) result.status = hal::checkMemoriesWhole(request_.pools);
    if (!result.status) {
      result.outputShapes.clear();
      return result;
    }
    for (size_t i = 0; i < inputs_.size(); ++i) result.copiedBytes += graph_->inputBytes(i);
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i] != nullptr) result.copiedBytes += graph_->outputBytes(i);
    result.timing = {onDevice, nanosecondsSince(start)};
    return result;
  }

 private:
  // Whether all outputs have room; otherwise says so in the result.
  bool fitOutputs(hal::ExecutionResult* result) const {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const uint64_t bytes = graph_->outputBytes(i);
      if (outputs_[i] == nullptr || request_.outputs[i].length >= bytes) continue;
      result->outputShapes.change()[i].isSufficient = false;
      result->status =
          fail(ErrorCode::kOutputInsufficientSize, "Output {} needs {} bytes, its argument has {}.",
               i, bytes, request_.outputs[i].length);
    }
    return result->status.has_value();
  }

  std::shared_ptr<DelegateModel> model_;
  SharedGraph graph_;
  hal::BoundRequest request_;
  hal::OutputShapes shapes_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

// The shapes of the model's inputs; 0 where they are not known.
std::vector<graph::Dimensions> inputShapes(const graph::Model& model) {
  std::vector<graph::Dimensions> shapes;
  for (const uint32_t input : model.main().inputs)
    shapes.push_back(model.main().operands[input].dimensions);
  return shapes;
}

// The model's shape of an output against the one that the request wants; 0 is unknown.
Status checkOutputDimensions(const graph::Dimensions& made, const graph::Dimensions& wanted,
                             size_t index) {
  bool fits = wanted.empty() || wanted.size() == made.size();
  for (size_t i = 0; fits && i < wanted.size(); ++i) fits = wanted[i] == 0 || wanted[i] == made[i];
  if (fits) return {};
  return fail(ErrorCode::kBadData, "Output {} has the dimensions {}, the request says {}.", index,
              graph::describeDimensions(made), graph::describeDimensions(wanted));
}

// Before anything of that size is allocated.
Status checkActivations(const graph::Model& model, uint64_t most) {
  if (most == 0) return {};
  uint64_t sum = 0;
  for (const graph::Operand& operand : model.main().operands) {
    if (operand.lifetime != graph::Lifetime::kTemporary) continue;
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(operand));
    sum += bytes;
    if (sum > most)
      return fail(ErrorCode::kOutOfMemory,
                  "With \"{}\", {}, the intermediate results take more than {} bytes, the limit.",
                  operand.name, graph::describe(operand), most);
  }
  return {};
}

}  // namespace

Result<Offer> offerModel(const graph::Model& model, std::span<const graph::Dimensions> inputs,
                         VendorLibrary& library, const DeviceSettings& settings,
                         const OfferOptions& options) {
  HEARTH_ASSIGN(ops::SpecializedModel special, ops::specialize(model, inputs));
  HEARTH_TRY(checkActivations(*special.model, options.maxActivationBytes));
  WrittenGraph written = writeGraph(special.model, settings.version);
  Offer offer;
  offer.operations = std::move(special.operations);
  for (const uint32_t output : special.model->main().outputs)
    offer.outputs.push_back(special.model->main().operands[output].dimensions);
  const std::lock_guard lock(library.mutex());
  const CallLimit limit(library.path(), settings.prepareLimit);
  HEARTH_ASSIGN(
      std::unique_ptr<OfferedGraph> graph,
      OfferedGraph::create(std::move(written), library, settings.options,
                           options.threads == 0 ? -1 : static_cast<int32_t>(options.threads)));
  offer.graph = shared(std::move(graph), library.shared_from_this());
  return offer;
}

Result<std::shared_ptr<DelegateModel>> DelegateModel::create(
    std::shared_ptr<const graph::Model> model, std::shared_ptr<VendorLibrary> library,
    std::shared_ptr<const DeviceSettings> settings, const hal::PrepareOptions& options) {
  std::shared_ptr<DelegateModel> made(
      new DelegateModel(std::move(model), std::move(library), std::move(settings),
                        {options.threads, options.maxActivationBytes}));
  std::vector<graph::Dimensions> shapes = inputShapes(*made->model_);
  if (ops::hasUnknownInputs(*made->model_)) shapes = options.expectedInputs;
  if (!shapes.empty() || made->model_->main().inputs.empty()) HEARTH_TRY(made->variantFor(shapes));
  return made;
}

Result<DelegateModel::Variant> DelegateModel::variantFor(
    const std::vector<graph::Dimensions>& inputs) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(variants_, inputs, &Variant::inputs);
  if (found != variants_.end()) {
    variants_.splice(variants_.begin(), variants_, found);
    return variants_.front();
  }
  HEARTH_ASSIGN(Offer offer, offerModel(*model_, inputs, *library_, *settings_, options_));
  {
    const std::lock_guard calling(library_->mutex());
    const CallLimit limit(library_->path(), settings_->prepareLimit);
    HEARTH_TRY(offer.graph->prepare());
  }
  HEARTH_TRY(hal::checkPoolsWhole(*model_));
  variants_.push_front({inputs, std::move(offer.graph), std::move(offer.outputs)});
  if (variants_.size() > kMostVariants) variants_.pop_back();
  return variants_.front();
}

Result<std::unique_ptr<hal::Execution>> DelegateModel::createExecution(hal::Request request) {
  HEARTH_ASSIGN(hal::BoundRequest bound, hal::checkRequest(model_->main(), request));
  std::vector<graph::Dimensions> shapes;
  for (const ops::RunArgument& input : bound.inputs) {
    if (!input.isPresent)
      return fail(ErrorCode::kBadData, "Input {} is omitted, which a delegate's kernel needs.",
                  shapes.size());
    shapes.push_back(input.dimensions);
  }
  HEARTH_ASSIGN(Variant variant, variantFor(shapes));
  for (size_t i = 0; i < variant.outputs.size(); ++i)
    HEARTH_TRY(checkOutputDimensions(variant.outputs[i], bound.outputs[i].dimensions, i));
  return std::make_unique<DelegateExecution>(shared_from_this(), std::move(variant.graph),
                                             variant.outputs, std::move(bound));
}

hal::StartReport DelegateModel::startReport() const {
  hal::StartReport report;
  report.state = hal::StartReport::State::kUncached;
  report.reason = "The delegate " + library_->path() + " compiles the model at each start.";
  const std::lock_guard lock(mutex_);
  if (!variants_.empty()) report.activationBytes = variants_.front().graph->activationBytes();
  if (ops::hasUnknownInputs(*model_)) report.shapes = static_cast<uint32_t>(variants_.size());
  return report;
}

}  // namespace hearth::drivers::delegate
