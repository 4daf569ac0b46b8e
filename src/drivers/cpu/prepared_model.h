// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/fork_gate.h"
#include "base/mutex.h"
#include "drivers/cpu/compilation_cache/model_cache.h"
#include "drivers/cpu/compilation_cache/saved_segments.h"
#include "drivers/cpu/plan/execution_context.h"
#include "drivers/cpu/plan/kernel_choice.h"
#include "drivers/cpu/plan/kernel_stages.h"
#include "drivers/cpu/plan/plan.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "drivers/cpu/weights/weight_session.h"
#include "hal/device.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {

// A model with known shapes, planned and packed. Each concurrent computation has a context of its
// own; contexts are kept for the next one.
class CpuPreparedModel final : public hal::PreparedModel,
                               public std::enable_shared_from_this<CpuPreparedModel> {
 public:
  // With just-in-time preparation, and where all packed weights come from the store, it returns
  // before the kernels are made: they are made ahead of the first execution and in it. Just in
  // time, `whenReady` is called when they are there, with the model, on a thread of its own; else
  // it is called before the return, if it is not null, and all is ready then. It is called once
  // more when the second stage has begun (KernelStages). kUnsupported when shapes or branches are
  // known only at run time: the caller then takes the interpreter.
  static Result<std::shared_ptr<CpuPreparedModel>> create(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      std::shared_ptr<threads::ThreadPool> pool, std::shared_ptr<cache::SegmentStore> store,
      std::function<void(CpuPreparedModel&)> whenReady);

  // Of what saveModel() left: reads no constant of the client's, packs nothing. `whenChosen` is
  // called on a thread of its own when the second stage has begun. Any error means that the model
  // has to be prepared anew.
  static Result<std::shared_ptr<CpuPreparedModel>> createSaved(
      SavedModel saved, const hal::PrepareOptions& options,
      std::shared_ptr<threads::ThreadPool> pool,
      std::function<void(const MeasuredChoices&)> whenChosen);

  // For saveModel(); as long as this lives, and when it is ready.
  ModelParts parts() const;
  // What became of the client's cache files.
  void setCacheProblem(std::string problem);

  ~CpuPreparedModel() override;

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  // Waits until all kernels are made.
  hal::StartReport startReport() const override;
  hal::StartReport startReportSoFar() const override;

  // One computation with memory that the request check has resolved.
  Status run(std::span<const ExecutionContext::Buffer> inputs,
             std::span<const ExecutionContext::Buffer> outputs, const base::Deadline& deadline);

  // Packs anew what a segment of the store holds whose bytes turned out wrong, in the place of
  // those, while executions go on. On a thread of the store.
  void repair(const cache::SegmentKey& key);
  // Packs what wrongSegments_ names again. The error is why it could not.
  Status repairWrong();

  // Dimensions of the graph outputs, as inferred.
  const std::vector<graph::Dimensions>& outputDimensions() const { return outputDimensions_; }
  const std::vector<uint64_t>& outputBytes() const { return outputBytes_; }

 private:
  CpuPreparedModel() = default;
  CpuPreparedModel(const CpuPreparedModel&) = delete;
  CpuPreparedModel& operator=(const CpuPreparedModel&) = delete;
  // A plan with what its nodes refer to.
  struct Planned {
    Plan plan;
    std::vector<std::unique_ptr<uint8_t[]>> ownedConstants;
  };

  Result<std::unique_ptr<Planned>> makePlan(const hal::PrepareOptions& options);
  // Plans the model and makes the kernels of the first context.
  Status planWhole(const hal::PrepareOptions& options);
  // Plans it and makes the kernels ahead of their use; packs weights where they are missing.
  Status planAhead(const hal::PrepareOptions& options, bool packs,
                   std::function<void(CpuPreparedModel&)> whenReady);
  // When the kernels that were made ahead are there.
  void complete(const hal::PrepareOptions& options);
  void publish();
  // Brings in the pages of packed weights once all kernels are made.
  void populate();
  std::set<uint32_t> referenceOnly() const;
  // True when there are more than before.
  bool addReferenceOnly(const std::vector<uint32_t>& operations);
  void setTuned(bool isTuned);
  hal::StartReport reportNow() const;
  // What an earlier process measured for the plan; null where nothing fits.
  std::shared_ptr<const KernelChoices> recalledChoices(const Plan& plan);
  Result<std::unique_ptr<ExecutionContext>> takeContext();
  Status runOnce(std::span<const ExecutionContext::Buffer> inputs,
                 std::span<const ExecutionContext::Buffer> outputs, const base::Deadline& deadline);
  using Segments = std::vector<std::shared_ptr<PackedSegment>>;
  // Packs the segments again for which this is true, in their places; returns them, for
  // keepRepaired(). repairMutex_ is held.
  Result<Segments> packAgain(const std::function<bool(const PackedSegment&)>& isWrong);
  // Publishes them. That may wait for the store's threads, which repair, too: repairMutex_ is free.
  void keepRepaired(const Segments& segments);
  // The first execution in a forked child lets the checks begin that the parent had not done.
  void checkInChild();
  // Changes whenever bytes of any model may have been lost.
  uint64_t lossesSoFar() const;
  // Replaces what was lost of this one, if anything was. Error: it stays lost.
  Status replaceLosses();
  // Who runs executions of the context in the first stage; null when they are not measured.
  KernelStages* stagesOf(const ExecutionContext& context);
  void beginSecondStage(std::unique_ptr<ExecutionContext> context, const MeasuredChoices& measured);
  void keepChoices(const MeasuredChoices& measured);

  std::shared_ptr<const graph::Model> model_;
  std::shared_ptr<threads::ThreadPool> pool_;
  std::shared_ptr<PackedWeights> weights_ = std::make_shared<PackedWeights>();
  std::shared_ptr<WeightSession> session_;  // null for a saved model
  std::shared_ptr<SavedSegments> saved_;    // null for another
  bool hasHoles_ = false;                   // SavedModel::hasHoles
  bool isTuned_ = false;                    // hal::PrepareOptions::isTuned
  std::vector<uint8_t> savedChoices_;       // of a saved model
  std::function<void()> populate_;          // the same
  std::function<void(const MeasuredChoices&)> whenChosen_;
  std::vector<graph::Dimensions> outputDimensions_;
  std::vector<uint64_t> outputBytes_;

  mutable base::Mutex mutex_;
  std::set<uint32_t> referenceOnly_;  // operations that XNNPACK refuses
  hal::StartReport report_;
  // The last one is in force; executions may still run an earlier one.
  std::vector<std::unique_ptr<Planned>> plans_;
  Status replanned_;  // whether the plan in force could be made
  // How the kernels of that plan run; null in the first stage.
  std::shared_ptr<const KernelChoices> choices_;
  uint64_t executions_ = 0;
  std::vector<std::unique_ptr<ExecutionContext>> idle_;
  std::shared_ptr<KernelFactory> ahead_;  // null when everything was made at once
  bool packsAhead_ = false;
  base::Mutex repairMutex_;
  std::set<cache::SegmentKey> wrongSegments_;  // in use; guarded by repairMutex_
  std::atomic<bool> hasWrongSegments_ = false;
  std::atomic<uint64_t> checkedLosses_ = 0;  // lossesSoFar() when nothing was lost here
  std::atomic<uint64_t> replacedLosses_ = 0;
  std::atomic<uint32_t> process_ = base::ForkGate::generation();
  std::unique_ptr<KernelStages> stages_;  // from the first execution that can be measured on
};

}  // namespace hearth::cpu
