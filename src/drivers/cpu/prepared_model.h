// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fork_gate.h"
#include "base/mutex.h"
#include "drivers/cpu/compilation_cache/model_cache.h"
#include "drivers/cpu/compilation_cache/save_queue.h"
#include "drivers/cpu/compilation_cache/saved_segments.h"
#include "drivers/cpu/plan/context_pool.h"
#include "drivers/cpu/plan/execution_context.h"
#include "drivers/cpu/plan/kernel_choice.h"
#include "drivers/cpu/plan/kernel_stages.h"
#include "drivers/cpu/plan/plan.h"
#include "drivers/cpu/weight_repair.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "drivers/cpu/weights/weight_session.h"
#include "hal/device.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {

// Constants that follow from the shapes of a model's inputs (ops::specialize()), and what is
// computed of them and other constants when a plan is made. Numbered as in the places of weights.
struct ShapeValues {
  std::set<uint32_t> operands;
  std::set<uint32_t> operations;  // those that read one
};

// A model with known shapes, as an execution graph with packed weights. Each concurrent execution
// takes a context of its own, which is kept for the next one. Thread-safe.
class CpuPreparedModel final : public hal::PreparedModel,
                               public std::enable_shared_from_this<CpuPreparedModel> {
 public:
  // How a model is kept for later starts (saveModel()).
  struct Keeping {
    std::function<void(CpuPreparedModel&)> keep;  // null: not at all
    hal::CacheToken token{};
  };

  // Prepares a model. With just-in-time preparation, and in a warm start that keeps nothing, it
  // returns before the kernels are built: they are built ahead of the first execution and in it.
  // `keeping.keep` is called in the background when all kernels are built, and once more when the
  // second stage has begun (KernelStages). Unless the preparation is just in time, the model's
  // destructor waits for it. Error: kUnsupported when shapes or branches are known only at run
  // time; the caller then takes the interpreter.
  static Result<std::shared_ptr<CpuPreparedModel>> create(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      std::shared_ptr<threads::ThreadPool> pool, std::shared_ptr<cache::SegmentStore> store,
      Keeping keeping);

  // Prepares a model that saveModel() wrote: reads no constants of the client, packs nothing.
  // `whenChosen` may be null; it is called on a thread of the model's own when the second stage has
  // begun. Any error means that the client has to compile the model anew.
  static Result<std::shared_ptr<CpuPreparedModel>> createSaved(
      SavedModel saved, const hal::PrepareOptions& options,
      std::shared_ptr<threads::ThreadPool> pool,
      std::function<void(const MeasuredChoices&)> whenChosen);

  // Prepares a model for other shapes of its inputs than `first` has: with the same operations and
  // constants. It uses the packed weights of `first`, which stays alive, and packs for itself what
  // these lack, so that `first` alone has to do with the store. What follows from shapes,
  // `shapeValues`, has other values than in `first`: it is copied, and packed anew. `saved` holds
  // the constants of a model that saveModel() wrote; null for others. Waits until the kernels of
  // `first` are built. Errors as create().
  static Result<std::shared_ptr<CpuPreparedModel>> createBeside(
      std::shared_ptr<CpuPreparedModel> first, std::shared_ptr<const graph::Model> model,
      const ShapeValues& shapeValues, const hal::PrepareOptions& options,
      std::shared_ptr<threads::ThreadPool> pool, std::shared_ptr<SavedSegments> saved);

  // Prepares the first of these where saveModel() wrote the model. `part` is empty where its packed
  // weights were not saved; what is missing is packed. `shapeValues` as in createBeside(). Errors
  // as create().
  static Result<std::shared_ptr<CpuPreparedModel>> createFromSaved(
      const SavedPart& part, std::shared_ptr<const graph::Model> model,
      const ShapeValues& shapeValues, const hal::PrepareOptions& options,
      std::shared_ptr<threads::ThreadPool> pool, std::shared_ptr<SavedSegments> saved);

  // The input of saveModel(), valid as long as this lives. Call it when all kernels are built.
  ModelParts parts() const;
  // The packed weights. Waits until all kernels are built.
  std::shared_ptr<const PackedWeights> finishedWeights() const;
  // Notes for the report why the client's cache files were not written; empty: they were.
  void setCacheProblem(std::string problem);

  ~CpuPreparedModel() override;

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  // Waits until all kernels are built and the client's cache files are written.
  hal::StartReport startReport() const override;
  hal::StartReport startReportSoFar() const override;

  // Runs one execution on memory that the request check has resolved. Repeats it if packed weights
  // were lost meanwhile and could be replaced.
  Status run(std::span<const ExecutionContext::Buffer> inputs,
             std::span<const ExecutionContext::Buffer> outputs, const base::Deadline& deadline);

  // Packs a segment of the store again whose bytes turned out wrong, and maps the right bytes over
  // the wrong ones while executions go on. Called on a thread of the store. Where it fails,
  // executions fail until one of them succeeds in repairing.
  void repair(const cache::SegmentKey& key);
  // Does so for all segments that are known to be wrong.
  Status repairWrong();

  // Inferred dimensions of the graph outputs, and their sizes in bytes.
  const std::vector<graph::Dimensions>& outputDimensions() const { return outputDimensions_; }
  const std::vector<uint64_t>& outputBytes() const { return outputBytes_; }

 private:
  CpuPreparedModel() = default;
  CpuPreparedModel(const CpuPreparedModel&) = delete;
  CpuPreparedModel& operator=(const CpuPreparedModel&) = delete;
  // A plan, and the choices that an earlier process measured for it; null where none fit.
  struct NewPlan {
    std::unique_ptr<ContextPool::Planned> planned;
    std::shared_ptr<const KernelChoices> choices;
  };

  Result<NewPlan> makePlan(const hal::PrepareOptions& options);
  // Plans the model and builds the kernels of the first context.
  Status planWhole(const hal::PrepareOptions& options);
  // Plans the model and builds its kernels ahead of their use; if `packs`, it packs weights.
  Status planAhead(const hal::PrepareOptions& options, bool packs,
                   std::function<void(CpuPreparedModel&)> whenReady);
  // Called when ahead_ has built all kernels: plans again without refused operations, publishes.
  void complete(const hal::PrepareOptions& options);
  void publish();
  // Lets the pages of packed weights be prefetched; called when all kernels are built.
  void populate();
  std::set<uint32_t> referenceOnly() const;
  // True when one of the operations is new to referenceOnly_.
  bool addReferenceOnly(const std::vector<uint32_t>& operations);
  void setTuned(bool isTuned);
  hal::StartReport reportNow() const;
  // Makes it a model whose weights are those of another one or of a client's cache files.
  void setOthersWeights(const std::map<WeightPlace, PackedPlace>& places,
                        std::shared_ptr<const graph::Model> model, const ShapeValues& shapeValues,
                        const hal::PrepareOptions& options,
                        std::shared_ptr<threads::ThreadPool> pool,
                        std::shared_ptr<SavedSegments> saved);
  Status planOnOthersWeights(const hal::PrepareOptions& options);
  hal::StartReport besideReport(hal::StartReport report) const;
  std::shared_ptr<const KernelChoices> recalledChoices(const Plan& plan);
  Result<std::unique_ptr<ExecutionContext>> takeContext(
      std::span<const ExecutionContext::Buffer> inputs,
      std::span<const ExecutionContext::Buffer> outputs);
  Status runOnce(std::span<const ExecutionContext::Buffer> inputs,
                 std::span<const ExecutionContext::Buffer> outputs, const base::Deadline& deadline);
  // Publishes repaired segments. The caller does not hold repairMutex_: publishing may wait for the
  // threads of the store, which call repair().
  void keepRepaired(const WeightRepair::Segments& segments);
  // The first execution in a forked child begins the checks that the parent had not done.
  void checkInChild();
  // A count that changes whenever pages of any model may have been lost.
  uint64_t lossesSoFar() const;
  // Replaces the lost pages of this model, if there are any. Error: they stay lost.
  Status replaceLosses();
  // A count that changes when packed weights of this model were replaced, by itself or by another
  // model that uses them. Contexts from before are dropped.
  uint64_t replacements();
  // The stages that run executions of the context while they are measured; null when they are not.
  KernelStages* stagesOf(const ExecutionContext& context);
  void beginSecondStage(std::unique_ptr<ExecutionContext> context, const MeasuredChoices& measured);
  void keepChoices(const MeasuredChoices& measured);

  std::shared_ptr<CpuPreparedModel> first_;  // of createBeside(); null for others
  std::shared_ptr<const graph::Model> model_;
  std::shared_ptr<threads::ThreadPool> pool_;
  std::shared_ptr<PackedWeights> weights_;
  std::shared_ptr<WeightSession> session_;  // null for a saved model and beside another
  std::shared_ptr<SavedSegments> saved_;    // null unless the model is a saved one
  // SavedSegments::replacements() that executions know of; guarded by repairMutex_.
  uint64_t savedReplacements_ = 0;
  bool hasHoles_ = false;              // SavedModel::hasHoles
  bool isTuned_ = false;               // hal::PrepareOptions::isTuned
  std::vector<uint8_t> savedChoices_;  // encoded MeasuredChoices; empty when there are none
  std::function<void()> populate_;     // SavedModel::populate
  std::function<void(const MeasuredChoices&)> whenChosen_;
  std::shared_ptr<SaveQueue::Save> save_;  // set before anybody else has the model; may be null
  std::vector<graph::Dimensions> outputDimensions_;
  std::vector<uint64_t> outputBytes_;
  PreparedCustoms customs_;  // like outputBytes_, of the first plan

  mutable base::Mutex mutex_;
  std::set<uint32_t> referenceOnly_;  // operations that XNNPACK refuses
  hal::StartReport report_;
  Status replanned_;  // whether the plan without refused operations could be made
  std::atomic<bool> hasReplanFailed_ = false;  // set after replanned_
  std::atomic<uint64_t> executions_ = 0;
  ContextPool contexts_;
  std::shared_ptr<KernelFactory> ahead_;  // null when planWhole() built all kernels
  bool packsAhead_ = false;
  base::Mutex repairMutex_;
  std::optional<WeightRepair> repair_;  // guarded by repairMutex_; set before anybody has the model
  std::atomic<uint64_t> checkedLosses_ = 0;  // lossesSoFar() up to which this model's are replaced
  std::atomic<uint64_t> seenRepairs_ = PackedSegment::allRepairs();
  uint64_t ownRepairs_ = 0;  // PackedWeights::repairs() then; guarded by mutex_
  std::atomic<uint32_t> process_ = base::ForkGate::generation();
  std::unique_ptr<KernelStages> stages_;  // made by the first execution that can be measured
};

}  // namespace hearth::cpu
