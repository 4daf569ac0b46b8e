// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/prepared_model.h"

#include <linux/dma-buf.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "base/caught.h"
#include "base/format.h"
#include "drivers/vulkan/compilation_cache/model_cache.h"
#include "drivers/vulkan/context/transfer.h"
#include "drivers/vulkan/host_imports.h"
#include "drivers/vulkan/lowering/plan_builder.h"
#include "drivers/vulkan/plan/constant_bytes.h"
#include "drivers/vulkan/plan/products.h"
#include "hal/fenced_thread.h"
#include "hal/request_check.h"

namespace hearth::vulkan {
namespace {

constexpr size_t kMostIdle = 4;
// With so many contexts idle, one is bound to other arguments before another is made: two are used
// in turn where two tensors on the GPU change places from run to run.
constexpr size_t kWorthBinding = 2;

uint64_t nanosecondsSince(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
}

class VulkanExecution final : public hal::Execution {
 public:
  VulkanExecution(std::shared_ptr<VulkanPreparedModel> model, std::unique_ptr<RunContext> context,
                  hal::BoundRequest request, DeviceArguments arguments)
      : model_(std::move(model)),
        context_(std::move(context)),
        request_(std::move(request)),
        arguments_(std::move(arguments)) {
    for (const graph::Dimensions& dimensions : model_->plan().outputDimensions)
      shapes_.push_back({dimensions, true});
  }
  ~VulkanExecution() override {
    thread_.stop();
    if (isOnQueue_) static_cast<void>(context_->finish());
    model_->giveContext(std::move(context_));
  }

  Result<base::Descriptor> startFenced(std::vector<base::Descriptor> fences,
                                       const base::Deadline& deadline) override {
    if (isOnQueue_)
      return fail(ErrorCode::kBadState, "A fenced execution has been started and not finished.");
    // What the host has is copied by the CPU, when the fences are there; the queue does not know
    // deadlines.
    if (isOnGpu() && deadline.isNever()) {
      auto fence = context_->start(fences);
      isOnQueue_ = fence.has_value();
      if (fence || fence.error().code() != ErrorCode::kUnsupported) return fence;
    }
    return thread_.start(std::move(fences), deadline,
                         [this](const base::Deadline& end) { return compute(end); });
  }
  hal::ExecutionResult finishFenced() override {
    if (!isOnQueue_) return thread_.finish();
    isOnQueue_ = false;
    hal::ExecutionResult result;
    result.outputShapes = shapes_;
    // Its time is not measured: the queue has waited before.
    finish(context_->finish(), &result);
    model_->noteExecution();
    return result;
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
    const Plan& plan = model_->plan();
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      if (plan.inputs[i] == kNoTensor || arguments_.inputs[i] != nullptr) continue;
      const uint64_t bytes = plan.tensors[plan.inputs[i]].bytes;
      // Null where the GPU copies it.
      if (uint8_t* const to = context_->input(i)) std::memcpy(to, request_.inputs[i].data, bytes);
      if (!context_->isUsedInPlace(i)) result.copiedBytes += bytes;
    }
    const auto submitted = std::chrono::steady_clock::now();
    finish(run(), &result);
    if (!result.status) return result;
    const uint64_t onDevice = nanosecondsSince(submitted);
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      if (!request_.outputs[i].isPresent) continue;
      const uint64_t bytes = plan.tensors[plan.outputs[i]].bytes;
      // As above.
      if (const uint8_t* const from = context_->output(i))
        std::memcpy(request_.outputs[i].data, from, bytes);
      result.copiedBytes += bytes;
    }
    result.status = hal::checkMemoriesWhole(request_.pools);
    if (result.status) result.timing = {onDevice, nanosecondsSince(start)};
    model_->noteExecution();
    return result;
  }

 private:
  // Runs, and lets the GPU see what the CPU has written in dma-bufs, and the other way round: to
  // the client this is an access of the CPU like any other.
  Status run() {
    HEARTH_TRY(syncDmaBufs(DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
    HEARTH_TRY(context_->run());
    return syncDmaBufs(DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW);
  }
  Status syncDmaBufs(uint64_t flags) const {
    for (const ImportedDmaBuf& imported : arguments_.dmaBufs)
      HEARTH_TRY(model_->gpu()->dmaBufCalls().sync(imported.pool->fd(), flags));
    return {};
  }

  // Says in the result how a run has ended.
  void finish(Status run, hal::ExecutionResult* result) const {
    if (run && context_->hasFault())
      run = fail(ErrorCode::kBadData,
                 "An index in an input of the model lies outside of what it indexes.");
    if (!run) result->outputShapes.clear();
    result->status = std::move(run);
  }

  // Whether all arguments that the model uses lie in the memory of the GPU.
  bool isOnGpu() const {
    const Plan& plan = model_->plan();
    for (size_t i = 0; i < plan.inputs.size(); ++i)
      if (plan.inputs[i] != kNoTensor && arguments_.inputs[i] == nullptr) return false;
    return std::ranges::none_of(request_.outputs, &ops::RunArgument::isPresent);
  }

  // Whether all outputs have room; otherwise says so in the result.
  bool fitOutputs(hal::ExecutionResult* result) const {
    const Plan& plan = model_->plan();
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const ops::RunArgument& output = request_.outputs[i];
      const uint64_t bytes = plan.tensors[plan.outputs[i]].bytes;
      if (!output.isPresent || output.length >= bytes) continue;
      result->outputShapes.change()[i].isSufficient = false;
      result->status =
          fail(ErrorCode::kOutputInsufficientSize, "Output {} needs {} bytes, its argument has {}.",
               i, bytes, output.length);
    }
    return result->status.has_value();
  }

  std::shared_ptr<VulkanPreparedModel> model_;
  std::unique_ptr<RunContext> context_;
  hal::BoundRequest request_;  // without the arguments on the GPU
  DeviceArguments arguments_;
  hal::OutputShapes shapes_;
  bool isOnQueue_ = false;  // whether the queue has a run that startFenced() has started
  hal::FencedThread thread_;
};

// kUnsupported for a plan with a shader that is wrong on this GPU. Others are used instead of it
// where the runtime asks first which operations are supported.
Status checkShaders(const OpenGpu& open, const Plan& plan) {
  if (open.answers == nullptr) return {};
  std::set<std::string> shaders;
  for (const Dispatch& dispatch : plan.dispatches) shaders.insert(dispatch.shader);
  for (const std::string& shader : shaders) HEARTH_TRY(open.answers->check(open, shader));
  return {};
}

// The model's shape of an argument against the one that somebody wants; 0 is unknown.
Status checkDimensions(const graph::Dimensions& made, const graph::Dimensions& wanted,
                       const char* role, size_t index) {
  if (mayBeSame(made, wanted)) return {};
  return fail(ErrorCode::kBadData, "The {} {} has the dimensions {}, not {}.", role, index,
              graph::describeDimensions(made), graph::describeDimensions(wanted));
}

}  // namespace

Status checkPlan(const OpenGpu& open, const graph::Model& model) {
  GpuFacts facts = open.gpu->facts();
  std::ranges::fill(facts.maxGroups, uint32_t{1} << 30);
  facts.maxBufferRange = UINT64_MAX;
  HEARTH_ASSIGN(const Plan plan, buildPlan(model, facts, 0));
  return checkShaders(open, plan);
}

Result<std::shared_ptr<VulkanPreparedModel>> VulkanPreparedModel::create(
    OpenGpu open, const graph::Model& model, const hal::PrepareOptions& options, hal::Cache cache) {
  const GpuFacts& facts = open.gpu->facts();
  HEARTH_ASSIGN(Plan plan, buildPlan(model, facts, options.maxActivationBytes));
  HEARTH_TRY(checkShaders(open, plan));
  HEARTH_ASSIGN(const ConstantBytes constants, ConstantBytes::of(plan, facts.rangeAlignment));
  plan.forgetModel();
  std::shared_ptr<VulkanPreparedModel> prepared(
      new VulkanPreparedModel(std::move(open), std::move(plan)));
  prepared->chooseParts(options);
  HEARTH_TRY(prepared->uploadConstants(constants.pieces()));
  HEARTH_TRY(prepared->compile());
  HEARTH_TRY(hal::checkPoolsWhole(model));
  prepared->reportStart(constants.madeBytes());
  if (cache.modelFiles.empty() && cache.dataFiles.empty()) return prepared;
  const Status saved = base::caught([&] {
    return saveModel(prepared->plan_, prepared->isTuned(), constants.pieces(),
                     *prepared->open_.pipelines, prepared->open_.gpu->facts(), cache);
  });
  hal::StartReport& report = prepared->report_;
  if (saved) {
    report.state = hal::StartReport::State::kCold;
    report.reason = "it was not in the compilation cache";
    prepared->keepFiles(options, std::move(cache), prepared->isTuned());
  } else {
    report.cacheProblem = saved.error().toString();
  }
  return prepared;
}

Status VulkanPreparedModel::checkLimit(const Plan& plan, const hal::PrepareOptions& options) {
  if (options.maxActivationBytes == 0 || plan.arenaBytes <= options.maxActivationBytes) return {};
  return fail(ErrorCode::kOutOfMemory,
              "The activations of the cached model need {} bytes, the limit is {}.",
              plan.arenaBytes, options.maxActivationBytes);
}

Result<std::shared_ptr<VulkanPreparedModel>> VulkanPreparedModel::createSaved(
    OpenGpu open, const hal::PrepareOptions& options, SavedModel saved, hal::Cache cache) {
  Plan& plan = saved.cached.plan;
  HEARTH_TRY(checkLimit(plan, options));
  for (const SavedPipeline& pipeline : saved.cached.pipelines)
    HEARTH_TRY(open.pipelines->restore(pipeline));
  const std::span<const uint8_t> constants(saved.constants.data(), plan.constantBytes);
  std::shared_ptr<VulkanPreparedModel> prepared(
      new VulkanPreparedModel(std::move(open), std::move(plan)));
  prepared->chooseParts(options, saved.cached.isTuned);
  HEARTH_TRY(prepared->uploadConstants({&constants, 1}));
  HEARTH_TRY(prepared->compile());
  prepared->keepFiles(options, std::move(cache), saved.cached.isTuned);
  prepared->report_.state = hal::StartReport::State::kWarm;
  prepared->report_.mappedBytes = constants.size();
  return prepared;
}

Result<std::shared_ptr<VulkanPreparedModel>> VulkanPreparedModel::createMember(
    OpenGpu open, std::shared_ptr<const graph::Model> model, const graph::Subgraph& general,
    const hal::PrepareOptions& options, SharedConstants& constants) {
  const GpuFacts& facts = open.gpu->facts();
  HEARTH_ASSIGN(Plan plan, buildPlan(*model, facts, options.maxActivationBytes));
  for (size_t i = 0; i < general.outputs.size(); ++i)
    plan.arguments.operands[plan.arguments.outputs[i]].dimensions =
        general.operands[general.outputs[i]].dimensions;
  HEARTH_TRY(checkShaders(open, plan));
  HEARTH_ASSIGN(ConstantBytes bytes, ConstantBytes::of(plan, facts.rangeAlignment));
  plan.forgetModel();
  std::shared_ptr<VulkanPreparedModel> prepared(
      new VulkanPreparedModel(std::move(open), std::move(plan)));
  prepared->chooseParts(options);
  const uint64_t made = bytes.madeBytes();
  HEARTH_TRY(prepared->shareConstants(model, std::move(bytes), constants));
  HEARTH_TRY(prepared->compile());
  HEARTH_TRY(hal::checkPoolsWhole(*model));
  prepared->reportStart(made);
  return prepared;
}

Result<std::shared_ptr<VulkanPreparedModel>> VulkanPreparedModel::createSavedMember(
    OpenGpu open, FamilyMember saved, const hal::PrepareOptions& options,
    SharedConstants& constants) {
  HEARTH_TRY(checkLimit(saved.plan, options));
  std::shared_ptr<VulkanPreparedModel> prepared(
      new VulkanPreparedModel(std::move(open), std::move(saved.plan)));
  prepared->chooseParts(options, saved.isTuned);
  HEARTH_TRY(prepared->shareConstants(
      std::move(saved.owner), ConstantBytes::ofPieces(std::move(saved.constants)), constants));
  HEARTH_TRY(prepared->compile());
  prepared->report_.state = hal::StartReport::State::kWarm;
  prepared->report_.mappedBytes = prepared->plan_.constantBytes;
  return prepared;
}

FamilyMember VulkanPreparedModel::asMember(std::vector<graph::Dimensions> shapes) const {
  FamilyMember member{std::move(shapes), plan_, {}, shared_, isTuned()};
  if (shared_ != nullptr)
    member.constants.assign(shared_->bytes.pieces().begin(), shared_->bytes.pieces().end());
  return member;
}

Status VulkanPreparedModel::shareConstants(std::shared_ptr<const void> owner, ConstantBytes bytes,
                                           SharedConstants& constants) {
  HEARTH_ASSIGN(shared_, constants.find(open_.gpu, std::move(owner), std::move(bytes)));
  if (shared_ != nullptr) constants_ = shared_->buffer;
  return {};
}

void VulkanPreparedModel::chooseParts(const hal::PrepareOptions& options, bool isTuned) {
  const GpuFacts& facts = open_.gpu->facts();
  if (open_.tuner == nullptr) {
    if (open_.part == 0) return;
    for (Dispatch& dispatch : plan_.dispatches)
      static_cast<void>(choosePart(open_.part, facts, &dispatch));
    return;
  }
  if (!isTunable(options)) return;
  if (isTuned) open_.tuner->adopt(facts, plan_);
  if (!open_.tuner->choose(facts, &plan_)) return;
  report_.tuning.state = hal::TuningReport::State::kRecalled;
  report_.tuning.changedNodes =
      static_cast<uint32_t>(std::ranges::count_if(plan_.dispatches, [](const Dispatch& dispatch) {
        return productShapeOf(dispatch) && dispatch.constant != 0;
      }));
}

bool VulkanPreparedModel::isTunable(const hal::PrepareOptions& options) const {
  // An implementation on the CPU would be measured for longer than it computes.
  return options.isTuned && open_.tuner != nullptr &&
         open_.gpu->facts().type != VK_PHYSICAL_DEVICE_TYPE_CPU &&
         std::ranges::any_of(plan_.dispatches, [](const Dispatch& dispatch) {
           return productShapeOf(dispatch).has_value();
         });
}

void VulkanPreparedModel::keepFiles(const hal::PrepareOptions& options, hal::Cache cache,
                                    bool areTuned) {
  if (!isTunable(options) || areTuned) return;
  files_ = std::make_shared<TunedFiles>(std::move(cache));
  rewriteWhenMeasured(*open_.tuner, files_);
}

Status VulkanPreparedModel::compile() {
  report_.activationBytes = plan_.arenaBytes;
  for (const PipelineKey& key : pipelinesOf(plan_)) {
    bool isRestored = false;
    HEARTH_TRY(open_.pipelines->find(key, &isRestored));
    ++pipelines_;
    if (!isRestored) ++compiled_;
  }
  open_.pipelines->saveToStore();
  HEARTH_ASSIGN(std::unique_ptr<RunContext> context,
                takeContext({std::vector<std::shared_ptr<DeviceTensor>>(plan_.inputs.size()),
                             std::vector<std::shared_ptr<DeviceTensor>>(plan_.outputs.size())}));
  giveContext(std::move(context));
  return {};
}

void VulkanPreparedModel::reportStart(uint64_t made) {
  if (made != 0) report_.packedBytes["constants"] = made;
  if (compiled_ == 0)
    report_.state = hal::StartReport::State::kWarm;
  else
    report_.reason = base::formatText(
        "the weight store has no machine code of {} of its {} shaders", compiled_, pipelines_);
}

Status VulkanPreparedModel::uploadConstants(std::span<const std::span<const uint8_t>> constants) {
  if (plan_.constantBytes == 0) return {};
  HEARTH_ASSIGN(constants_, Buffer::create(open_.gpu, plan_.constantBytes, Buffer::Kind::kDevice));
  return upload(open_.gpu, constants, *constants_);
}

Result<std::unique_ptr<RunContext>> VulkanPreparedModel::takeContext(
    const DeviceArguments& arguments) {
  std::unique_ptr<RunContext> context;
  {
    const std::lock_guard lock(mutex_);
    const auto bound =
        std::ranges::find_if(idle_, [&](const auto& idle) { return idle->isBoundTo(arguments); });
    if (bound != idle_.end() || idle_.size() >= kWorthBinding) {
      const auto taken = bound != idle_.end() ? bound : idle_.begin();
      context = std::move(*taken);
      idle_.erase(taken);
    }
  }
  if (context == nullptr) {
    HEARTH_ASSIGN(context,
                  RunContext::create(open_.gpu, *open_.pipelines, plan_, constants_.get()));
  }
  if (!context->isBoundTo(arguments)) HEARTH_TRY(context->bind(arguments));
  return context;
}

void VulkanPreparedModel::giveContext(std::unique_ptr<RunContext> context) {
  context->leaveHost();
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(context));
}

Result<DeviceArguments> VulkanPreparedModel::takeDeviceArguments(hal::Request* request) const {
  DeviceArguments taken{std::vector<std::shared_ptr<DeviceTensor>>(request->inputs.size()),
                        std::vector<std::shared_ptr<DeviceTensor>>(request->outputs.size())};
  for (const bool isInput : {true, false}) {
    std::vector<hal::Argument>& arguments = isInput ? request->inputs : request->outputs;
    std::vector<std::shared_ptr<DeviceTensor>>& tensors = isInput ? taken.inputs : taken.outputs;
    for (uint32_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].kind != hal::Argument::Kind::kBuffer) continue;
      const char* const role = isInput ? "input" : "output";
      std::shared_ptr<DeviceTensor> tensor;
      if (open_.tensors != nullptr) tensor = open_.tensors->find(arguments[i].token);
      if (tensor == nullptr)
        return fail(ErrorCode::kBadData, "The buffer token {} of {} {} is unknown.",
                    arguments[i].token, role, i);
      HEARTH_ASSIGN(const uint64_t bytes, argumentBytes(isInput, i, arguments[i].dimensions));
      if (tensor->bytes() != bytes)
        return fail(ErrorCode::kBadData, "The {} {} needs {} bytes, its buffer has {}.", role, i,
                    bytes, tensor->bytes());
      if (!isInput && std::ranges::find(tensors, tensor) != tensors.end())
        return fail(ErrorCode::kBadData, "The buffer of output {} is that of another one.", i);
      tensors[i] = std::move(tensor);
      arguments[i].kind = hal::Argument::Kind::kNoValue;
    }
  }
  return taken;
}

Result<uint64_t> VulkanPreparedModel::argumentBytes(bool isInput, uint32_t index,
                                                    const graph::Dimensions& wanted) const {
  const std::vector<TensorId>& tensors = isInput ? plan_.inputs : plan_.outputs;
  const char* const role = isInput ? "input" : "output";
  if (index >= tensors.size())
    return fail(ErrorCode::kBadData, "There is no {} {}; the model has {}.", role, index,
                tensors.size());
  if (tensors[index] == kNoTensor)
    return fail(ErrorCode::kUnsupported, "The {} {} is no tensor.", role, index);
  const graph::Dimensions& made =
      isInput ? plan_.arguments.operands[plan_.arguments.inputs[index]].dimensions
              : plan_.outputDimensions[index];
  HEARTH_TRY(checkDimensions(made, wanted, role, index));
  return plan_.tensors[tensors[index]].bytes;
}

Result<std::unique_ptr<hal::Execution>> VulkanPreparedModel::createExecution(hal::Request request) {
  if (request.inputs.size() != plan_.inputs.size() ||
      request.outputs.size() != plan_.outputs.size())
    return fail(
        ErrorCode::kBadData, "The request has {} inputs and {} outputs, the model has {} and {}.",
        request.inputs.size(), request.outputs.size(), plan_.inputs.size(), plan_.outputs.size());
  HEARTH_ASSIGN(DeviceArguments arguments, takeDeviceArguments(&request));
  HEARTH_ASSIGN(hal::BoundRequest bound, hal::checkRequest(plan_.arguments, request));
  for (size_t i = 0; i < bound.inputs.size(); ++i)
    if (!bound.inputs[i].isPresent && arguments.inputs[i] == nullptr &&
        plan_.inputs[i] != kNoTensor)
      return fail(ErrorCode::kBadData, "Input {} has no value.", i);
  for (size_t i = 0; i < bound.outputs.size(); ++i)
    HEARTH_TRY(
        checkDimensions(plan_.outputDimensions[i], bound.outputs[i].dimensions, "output", i));
  importMemories(open_.gpu, plan_, request, bound, &arguments);
  HEARTH_ASSIGN(std::unique_ptr<RunContext> context, takeContext(arguments));
  return std::make_unique<VulkanExecution>(shared_from_this(), std::move(context), std::move(bound),
                                           std::move(arguments));
}

hal::StartReport VulkanPreparedModel::startReport() const {
  hal::StartReport report = report_;
  if (open_.answers != nullptr) report.routedAround = open_.answers->wrongShaders();
  return report;
}

}  // namespace hearth::vulkan
