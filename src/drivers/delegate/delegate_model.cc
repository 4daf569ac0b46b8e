// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/delegate_model.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/caught.h"
#include "base/log.h"
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

// The graph with the library's cache, in which it may have files open.
SharedGraph shared(std::unique_ptr<OfferedGraph> graph, std::shared_ptr<VendorLibrary> library,
                   std::shared_ptr<WorkingCache> cache, std::chrono::seconds limit) {
  return {graph.release(),
          [held = std::move(library), files = std::move(cache), limit](OfferedGraph* ended) {
            const std::lock_guard lock(held->mutex());
            std::optional<CallLimit> ending;
            base::logged("A limit of a delegate's end",
                         [&] { ending.emplace(held->path(), limit); });
            delete ended;
          }};
}

// What the library's cache is kept under.
Result<base::Sha256Digest> cacheKey(const graph::Model& model, const DeviceContext& context,
                                    const OfferOptions& options) {
  return context.keyOf("cache 1 " + std::to_string(options.threads), model);
}

// A folder for the library's cache, with what an earlier start has left. Null where there is none,
// which is no error: the library compiles.
std::shared_ptr<WorkingCache> cacheFor(const graph::Model& model, const DeviceContext& context,
                                       const OfferOptions& options) {
  if (context.cache() == nullptr) return nullptr;
  const auto taken = [&]() -> Result<std::shared_ptr<WorkingCache>> {
    HEARTH_ASSIGN(const base::Sha256Digest key, cacheKey(model, context, options));
    return context.cache()->take(key);
  }();
  if (taken) return *taken;
  base::logInfo("The cache of the delegate {} is not kept. {}", context.library().path(),
                taken.error().toString());
  return nullptr;
}

// Offers the offer's model, with its cache.
Result<SharedGraph> offerGraph(const Offer& offer, const DeviceContext& context,
                               const OfferOptions& options) {
  const DeviceSettings& settings = context.settings();
  VendorLibrary& library = context.library();
  WrittenGraph written = writeGraph(offer.model, settings.version);
  const std::lock_guard lock(library.mutex());
  const CallLimit limit(library.path(), settings.prepareLimit);
  HEARTH_ASSIGN(
      std::unique_ptr<OfferedGraph> graph,
      OfferedGraph::create(
          std::move(written), library,
          offer.cache != nullptr ? offer.cache->addTo(settings.options) : settings.options,
          options.threads == 0 ? -1 : static_cast<int32_t>(options.threads)));
  return shared(std::move(graph), library.shared_from_this(), offer.cache, settings.prepareLimit);
}

// After a failure: whether the model can be offered again without what was restored, which is
// forgotten.
bool dropRestored(const WorkingCache* cache) {
  if (cache == nullptr || cache->restoredBytes() == 0) return false;
  base::logInfo("A delegate fails with its cache, which is removed.");
  cache->discard();
  return true;
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
    if (result.status) result.status = model_->checkConstants();
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
                         const DeviceContext& context, const OfferOptions& options) {
  HEARTH_ASSIGN(ops::SpecializedModel special, ops::specialize(model, inputs));
  HEARTH_TRY(checkActivations(*special.model, options.maxActivationBytes));
  Offer offer;
  offer.model = std::move(special.model);
  offer.operations = std::move(special.operations);
  for (const uint32_t output : offer.model->main().outputs)
    offer.outputs.push_back(offer.model->main().operands[output].dimensions);
  offer.cache = cacheFor(*offer.model, context, options);
  auto graph = offerGraph(offer, context, options);
  if (!graph && dropRestored(offer.cache.get())) {
    offer.cache = cacheFor(*offer.model, context, options);
    graph = offerGraph(offer, context, options);
  }
  if (!graph) return std::unexpected(std::move(graph).error());
  offer.graph = *std::move(graph);
  return offer;
}

Result<std::shared_ptr<DelegateModel>> DelegateModel::create(
    std::shared_ptr<const graph::Model> model, std::shared_ptr<const DeviceContext> context,
    const hal::PrepareOptions& options) {
  std::shared_ptr<DelegateModel> made(new DelegateModel(
      std::move(model), std::move(context), {options.threads, options.maxActivationBytes}));
  std::vector<graph::Dimensions> shapes = inputShapes(*made->model_);
  if (ops::hasUnknownInputs(*made->model_)) shapes = options.expectedInputs;
  if (!shapes.empty() || made->model_->main().inputs.empty()) HEARTH_TRY(made->variantFor(shapes));
  return made;
}

Status DelegateModel::prepare(const Offer& offer) const {
  VendorLibrary& library = context_->library();
  const std::lock_guard calling(library.mutex());
  const CallLimit limit(library.path(), context_->settings().prepareLimit);
  return offer.graph->prepare();
}

Status DelegateModel::checkConstants() const {
  return hal::checkPoolsWhole(*model_);
}

hal::StartReport DelegateModel::keepCache(const Offer& offer) const {
  hal::StartReport report;
  report.activationBytes = offer.graph->activationBytes();
  if (offer.cache == nullptr) {
    report.reason =
        "The delegate " + context_->library().path() + " compiles the model at each start.";
    return report;
  }
  const auto wasThere = [&]() -> Result<bool> {
    HEARTH_ASSIGN(const base::Sha256Digest now, cacheKey(*offer.model, *context_, options_));
    if (now != offer.cache->key())
      return fail(ErrorCode::kBadState, "The model was changed while the delegate compiled it.");
    return offer.cache->keep();
  }();
  const bool isWarm = wasThere && *wasThere;
  report.state = isWarm ? hal::StartReport::State::kWarm : hal::StartReport::State::kCold;
  if (isWarm)
    report.mappedBytes = offer.cache->restoredBytes();
  else
    report.reason = wasThere ? "The delegate has compiled the model." : wasThere.error().toString();
  return report;
}

Result<DelegateModel::Variant> DelegateModel::prepareVariant(
    const std::vector<graph::Dimensions>& inputs) const {
  HEARTH_ASSIGN(Offer offer, offerModel(*model_, inputs, *context_, options_));
  Status prepared = prepare(offer);
  if (!prepared && dropRestored(offer.cache.get())) {
    HEARTH_ASSIGN(offer, offerModel(*model_, inputs, *context_, options_));
    prepared = prepare(offer);
  }
  HEARTH_TRY(prepared);
  HEARTH_TRY(hal::checkPoolsWhole(*model_));
  return Variant{inputs, offer.graph, std::move(offer.outputs), keepCache(offer)};
}

Result<DelegateModel::Variant> DelegateModel::variantFor(
    const std::vector<graph::Dimensions>& inputs) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(variants_, inputs, &Variant::inputs);
  if (found != variants_.end()) {
    variants_.splice(variants_.begin(), variants_, found);
    return variants_.front();
  }
  HEARTH_ASSIGN(Variant variant, prepareVariant(inputs));
  variants_.push_front(std::move(variant));
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
  const std::lock_guard lock(mutex_);
  hal::StartReport report;
  if (!variants_.empty())
    report = variants_.front().report;
  else
    report.reason = "Nothing is prepared before the shapes of the inputs are known.";
  if (ops::hasUnknownInputs(*model_)) report.shapes = static_cast<uint32_t>(variants_.size());
  return report;
}

}  // namespace hearth::drivers::delegate
