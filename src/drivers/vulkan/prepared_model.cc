// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/prepared_model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/caught.h"
#include "drivers/vulkan/compilation_cache/model_cache.h"
#include "drivers/vulkan/context/commands.h"
#include "drivers/vulkan/lowering/plan_builder.h"
#include "drivers/vulkan/plan/constant_bytes.h"
#include "hal/request_check.h"

namespace hearth::vulkan {
namespace {

// Constants go to the GPU in pieces of this size.
constexpr uint64_t kUploadBytes = uint64_t{16} << 20;
constexpr size_t kMostIdle = 4;

uint64_t nanosecondsSince(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
}

class VulkanExecution final : public hal::Execution {
 public:
  VulkanExecution(std::shared_ptr<VulkanPreparedModel> model, std::unique_ptr<RunContext> context,
                  hal::BoundRequest request)
      : model_(std::move(model)), context_(std::move(context)), request_(std::move(request)) {
    for (const graph::Dimensions& dimensions : model_->plan().outputDimensions)
      shapes_.push_back({dimensions, true});
  }
  ~VulkanExecution() override { model_->giveContext(std::move(context_)); }

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
      if (plan.inputs[i] == kNoTensor) continue;
      std::memcpy(context_->input(i), request_.inputs[i].data, plan.tensors[plan.inputs[i]].bytes);
      result.copiedBytes += plan.tensors[plan.inputs[i]].bytes;
    }
    const auto submitted = std::chrono::steady_clock::now();
    result.status = context_->run();
    if (!result.status) {
      result.outputShapes.clear();
      return result;
    }
    const uint64_t onDevice = nanosecondsSince(submitted);
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      if (!request_.outputs[i].isPresent) continue;
      std::memcpy(request_.outputs[i].data, context_->output(i),
                  plan.tensors[plan.outputs[i]].bytes);
      result.copiedBytes += plan.tensors[plan.outputs[i]].bytes;
    }
    result.status = hal::checkMemoriesWhole(request_.pools);
    if (result.status) result.timing = {onDevice, nanosecondsSince(start)};
    return result;
  }

 private:
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
  hal::BoundRequest request_;
  hal::OutputShapes shapes_;
};

// The model's shape of an output against the one that the request wants; 0 is unknown.
Status checkOutputDimensions(const graph::Dimensions& made, const graph::Dimensions& wanted,
                             size_t index) {
  bool fits = wanted.empty() || wanted.size() == made.size();
  for (size_t i = 0; fits && i < wanted.size(); ++i) fits = wanted[i] == 0 || wanted[i] == made[i];
  if (fits) return {};
  return fail(ErrorCode::kBadData, "Output {} has the dimensions {}, the request says {}.", index,
              graph::describeDimensions(made), graph::describeDimensions(wanted));
}

}  // namespace

Result<std::shared_ptr<VulkanPreparedModel>> VulkanPreparedModel::create(
    OpenGpu open, const graph::Model& model, const hal::PrepareOptions& options,
    const hal::Cache& cache) {
  const GpuFacts& facts = open.gpu->facts();
  HEARTH_ASSIGN(Plan plan, buildPlan(model, facts, options.maxActivationBytes));
  HEARTH_ASSIGN(const ConstantBytes constants, ConstantBytes::of(plan, facts.rangeAlignment));
  plan.forgetModel();
  std::shared_ptr<VulkanPreparedModel> prepared(
      new VulkanPreparedModel(std::move(open), std::move(plan)));
  HEARTH_TRY(prepared->prepare(constants.pieces()));
  HEARTH_TRY(hal::checkPoolsWhole(model));
  hal::StartReport& report = prepared->report_;
  report.reason = "the GPU driver keeps nothing without a compilation cache";
  report.packedBytes["constants"] = prepared->plan_.constantBytes;
  if (cache.modelFiles.empty() && cache.dataFiles.empty()) return prepared;
  const Status saved = base::caught([&] {
    return saveModel(prepared->plan_, constants.pieces(), *prepared->open_.pipelines,
                     prepared->open_.gpu->facts(), cache);
  });
  if (saved) {
    report.state = hal::StartReport::State::kCold;
    report.reason = "it was not in the compilation cache";
  } else {
    report.cacheProblem = saved.error().toString();
  }
  return prepared;
}

Result<std::shared_ptr<VulkanPreparedModel>> VulkanPreparedModel::createSaved(
    OpenGpu open, const hal::PrepareOptions& options, const hal::Cache& cache) {
  HEARTH_ASSIGN(SavedModel saved, loadModel(open.gpu->facts(), cache));
  Plan& plan = saved.cached.plan;
  if (options.maxActivationBytes != 0 && plan.arenaBytes > options.maxActivationBytes)
    return fail(ErrorCode::kOutOfMemory,
                "The activations of the cached model need {} bytes, the limit is {}.",
                plan.arenaBytes, options.maxActivationBytes);
  for (const SavedPipeline& pipeline : saved.cached.pipelines)
    HEARTH_TRY(open.pipelines->restore(pipeline));
  const std::span<const uint8_t> constants(saved.constants.data(), plan.constantBytes);
  std::shared_ptr<VulkanPreparedModel> prepared(
      new VulkanPreparedModel(std::move(open), std::move(plan)));
  HEARTH_TRY(prepared->prepare({&constants, 1}));
  prepared->report_.state = hal::StartReport::State::kWarm;
  prepared->report_.mappedBytes = constants.size();
  return prepared;
}

Status VulkanPreparedModel::prepare(std::span<const std::span<const uint8_t>> constants) {
  report_.activationBytes = plan_.arenaBytes;
  HEARTH_TRY(uploadConstants(constants));
  // Compiles the pipelines, too.
  HEARTH_ASSIGN(std::unique_ptr<RunContext> context, takeContext());
  giveContext(std::move(context));
  return {};
}

Status VulkanPreparedModel::uploadConstants(std::span<const std::span<const uint8_t>> constants) {
  if (plan_.constantBytes == 0) return {};
  const std::shared_ptr<Gpu>& gpu = open_.gpu;
  HEARTH_ASSIGN(constants_, Buffer::create(gpu, plan_.constantBytes, Buffer::Kind::kDevice));
  const uint64_t stageBytes = std::min(plan_.constantBytes, kUploadBytes);
  HEARTH_ASSIGN(const std::unique_ptr<Buffer> stage,
                Buffer::create(gpu, stageBytes, Buffer::Kind::kUpload));
  HEARTH_ASSIGN(const std::unique_ptr<Commands> commands, Commands::create(gpu));
  uint64_t done = 0;  // bytes that are in the GPU's memory
  uint64_t used = 0;  // bytes behind them that are in `stage`
  const auto flush = [&]() -> Status {
    if (used == 0) return {};
    const VkBufferCopy region{0, done, used};
    HEARTH_TRY(commands->begin());
    gpu->functions().vkCmdCopyBuffer(commands->handle(), stage->handle(), constants_->handle(), 1,
                                     &region);
    commands->barrier();
    HEARTH_TRY(commands->end());
    HEARTH_TRY(commands->run());
    done += std::exchange(used, 0);
    return {};
  };
  for (std::span<const uint8_t> piece : constants)
    while (!piece.empty()) {
      const uint64_t part = std::min<uint64_t>(piece.size(), stageBytes - used);
      std::memcpy(stage->data() + used, piece.data(), part);
      used += part;
      piece = piece.subspan(part);
      if (used == stageBytes) HEARTH_TRY(flush());
    }
  return flush();
}

Result<std::unique_ptr<RunContext>> VulkanPreparedModel::takeContext() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<RunContext> context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  return RunContext::create(open_.gpu, *open_.pipelines, plan_, constants_.get());
}

void VulkanPreparedModel::giveContext(std::unique_ptr<RunContext> context) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(context));
}

Result<std::unique_ptr<hal::Execution>> VulkanPreparedModel::createExecution(hal::Request request) {
  HEARTH_ASSIGN(hal::BoundRequest bound, hal::checkRequest(plan_.arguments, request));
  for (size_t i = 0; i < bound.inputs.size(); ++i)
    if (!bound.inputs[i].isPresent && plan_.inputs[i] != kNoTensor)
      return fail(ErrorCode::kBadData, "Input {} has no value.", i);
  for (size_t i = 0; i < bound.outputs.size(); ++i)
    HEARTH_TRY(checkOutputDimensions(plan_.outputDimensions[i], bound.outputs[i].dimensions, i));
  HEARTH_ASSIGN(std::unique_ptr<RunContext> context, takeContext());
  return std::make_unique<VulkanExecution>(shared_from_this(), std::move(context),
                                           std::move(bound));
}

hal::StartReport VulkanPreparedModel::startReport() const {
  return report_;
}

}  // namespace hearth::vulkan
