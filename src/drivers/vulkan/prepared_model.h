// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "drivers/vulkan/compilation_cache/model_cache.h"
#include "drivers/vulkan/context/buffer.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/context/pipelines.h"
#include "drivers/vulkan/device_tensors.h"
#include "drivers/vulkan/gpu_model.h"
#include "drivers/vulkan/known_answers.h"
#include "drivers/vulkan/plan/plan.h"
#include "drivers/vulkan/product_tuner.h"
#include "drivers/vulkan/run_context.h"
#include "drivers/vulkan/shared_constants.h"
#include "drivers/vulkan/tuned_files.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::vulkan {

// An opened GPU and what is compiled for it.
struct OpenGpu {
  std::shared_ptr<Gpu> gpu;
  std::shared_ptr<Pipelines> pipelines;
  std::shared_ptr<DeviceTensors> tensors;  // that clients have on it; null: there are none
  std::shared_ptr<KnownAnswers> answers;   // of its shaders; null: they are not checked
  std::shared_ptr<ProductTuner> tuner;     // null: products are computed in `part`
  uint32_t part = 0;                       // one of kParts (plan/products.h)
};

// Whether the GPU runs the operations of a model, of which all shapes of inputs are known, whatever
// its size. Errors as buildPlan() and KnownAnswers::check().
Status checkPlan(const OpenGpu& open, const graph::Model& model);

// A model whose constants lie on the GPU and whose pipelines are compiled. It needs nothing more of
// the graph::Model. See hal::PreparedModel.
class VulkanPreparedModel final : public GpuModel,
                                  public std::enable_shared_from_this<VulkanPreparedModel> {
 public:
  // The model has passed graph::validate() and ops::validateOperations(). Writes it to the cache
  // files if there are any. Errors as buildPlan(), KnownAnswers::check() and RunContext::create();
  // kOpFailed if constants were lost meanwhile.
  static Result<std::shared_ptr<VulkanPreparedModel>> create(OpenGpu open,
                                                             const graph::Model& model,
                                                             const hal::PrepareOptions& options,
                                                             hal::Cache cache);

  // A model that create() wrote to cache files. Its shaders were checked before it was written, for
  // the same GPU, driver and build. Errors as RunContext::create(); kOutOfMemory if it needs more
  // than `options` allow. The files are written again when more is known of its products.
  static Result<std::shared_ptr<VulkanPreparedModel>> createSaved(
      OpenGpu open, const hal::PrepareOptions& options, SavedModel saved, hal::Cache cache);

  // One of the models for several shapes, which share constants. `general` is the main subgraph of
  // the model that they are made of: an argument may be too small for an output whose shape is open
  // there, and the execution then says how large it is.
  static Result<std::shared_ptr<VulkanPreparedModel>> createMember(
      OpenGpu open, std::shared_ptr<const graph::Model> model, const graph::Subgraph& general,
      const hal::PrepareOptions& options, SharedConstants& constants);
  // The same of one that an earlier process wrote to cache files, whose pipelines are restored.
  // Errors as createSaved().
  static Result<std::shared_ptr<VulkanPreparedModel>> createSavedMember(
      OpenGpu open, FamilyMember saved, const hal::PrepareOptions& options,
      SharedConstants& constants);
  // One of several models for cache files; `shapes` are those that it is for.
  FamilyMember asMember(std::vector<graph::Dimensions> shapes) const;

  bool hasFences() const override { return true; }
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  hal::StartReport startReport() const override;
  const std::shared_ptr<Gpu>& gpu() const override { return open_.gpu; }
  Result<uint64_t> argumentBytes(bool isInput, uint32_t index,
                                 const graph::Dimensions& wanted) const override;

  const Plan& plan() const { return plan_; }
  // Whether its products are in parts that were found by measuring.
  bool isTuned() const { return report_.tuning.state == hal::TuningReport::State::kRecalled; }
  // Whether they are to be, and there are any.
  bool isTunable(const hal::PrepareOptions& options) const;
  // Memory to run in, bound to these arguments: one that no execution has, or a new one. Given back
  // when the execution is done with it.
  Result<std::unique_ptr<RunContext>> takeContext(const DeviceArguments& arguments);
  void giveContext(std::unique_ptr<RunContext> context);
  // Called when an execution has ended.
  void noteExecution() const {
    if (open_.tuner != nullptr) open_.tuner->noteExecution(open_);
  }

 private:
  VulkanPreparedModel(OpenGpu open, Plan plan) : open_(std::move(open)), plan_(std::move(plan)) {}
  // Brings the constants to the GPU, in pieces that follow each other.
  Status uploadConstants(std::span<const std::span<const uint8_t>> constants);
  // kOutOfMemory if a plan of cache files needs more than `options` allow.
  static Status checkLimit(const Plan& plan, const hal::PrepareOptions& options);
  Status shareConstants(std::shared_ptr<const void> owner, ConstantBytes bytes,
                        SharedConstants& constants);
  // In which parts products are computed. `isTuned` says that those of the plan were found by an
  // earlier process.
  void chooseParts(const hal::PrepareOptions& options, bool isTuned = false);
  // Has the cache files written again when products are measured, unless their plan is in the parts
  // that were found.
  void keepFiles(const hal::PrepareOptions& options, hal::Cache cache, bool areTuned);
  // Compiles what is not compiled yet.
  Status compile();
  // Says how the start went, without cache files; `made` are bytes of constants that were made.
  void reportStart(uint64_t made);
  // Finds the arguments that are buffers, and marks them as absent in the request.
  Result<DeviceArguments> takeDeviceArguments(hal::Request* request) const;

  OpenGpu open_;
  Plan plan_;
  hal::StartReport report_;
  size_t pipelines_ = 0;  // that it runs
  size_t compiled_ = 0;   // of them, without machine code of an earlier process
  std::shared_ptr<Buffer> constants_;
  std::shared_ptr<const SharedConstants::Uploaded> shared_;  // of one of several models
  std::shared_ptr<TunedFiles> files_;  // that are to be written again; null: none
  std::mutex mutex_;
  std::vector<std::unique_ptr<RunContext>> idle_;
};

}  // namespace hearth::vulkan
