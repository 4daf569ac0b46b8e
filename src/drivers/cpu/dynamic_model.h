// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/prepared_model.h"
#include "graph/model.h"
#include "hal/device.h"
#include "hal/interpreted_model.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {

// A model with unknown dimensions: one prepared model for each tuple of shapes that its inputs have
// had lately. The first one finds or packs the weights, and is kept; the others use them. An
// execution whose shapes cannot be planned (an input is omitted or has no elements, a later shape
// depends on values) is interpreted. Thread-safe.
class DynamicModel final : public hal::PreparedModel {
 public:
  // Prepares a model that passed graph::validate() and ops::validateOperations() for
  // `options.expectedInputs`; where these are missing or cannot be planned, executions prepare it.
  // Errors: kUnsupported when the shapes are known, but the model has to be interpreted; those
  // of CpuPreparedModel::create(). `saved` holds the constants of a model from a client's cache
  // files, which is packed for this process alone; then there is no store. It is null for others.
  static Result<std::shared_ptr<DynamicModel>> create(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      std::shared_ptr<threads::ThreadPool> pool, std::shared_ptr<cache::SegmentStore> store,
      std::shared_ptr<SavedSegments> saved = nullptr);

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  hal::StartReport startReport() const override;
  hal::StartReport startReportSoFar() const override;
  // Sets StartReport::cacheProblem.
  void setCacheProblem(std::string problem);

 private:
  using Shapes = std::vector<graph::Dimensions>;  // of the inputs
  struct Member {
    Shapes shapes;
    std::shared_ptr<CpuPreparedModel> prepared;
    std::vector<uint32_t> operations;  // ops::SpecializedModel::operations
  };

  struct Refused {
    Shapes shapes;
    Error reason;
  };

  DynamicModel(std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
               std::shared_ptr<threads::ThreadPool> pool,
               std::shared_ptr<cache::SegmentStore> store, std::shared_ptr<SavedSegments> saved);

  // The prepared model for these shapes, which is made where there is none.
  Result<std::shared_ptr<CpuPreparedModel>> prepareFor(const Shapes& shapes);
  Result<std::shared_ptr<CpuPreparedModel>> makeFor(const Shapes& shapes);
  std::shared_ptr<CpuPreparedModel> find(const Shapes& shapes);
  Result<std::shared_ptr<hal::InterpretedModel>> interpretedModel(const Error& reason);
  Result<std::unique_ptr<hal::Execution>> interpret(hal::Request request, const Error& reason);
  hal::StartReport report(hal::StartReport (hal::PreparedModel::*reportOf)() const) const;

  const std::shared_ptr<const graph::Model> model_;
  const hal::PrepareOptions options_;
  const std::shared_ptr<threads::ThreadPool> pool_;
  const std::shared_ptr<cache::SegmentStore> store_;
  const std::shared_ptr<SavedSegments> saved_;

  mutable base::Mutex mutex_;
  std::vector<Member> members_;  // the first one made, then the others, the last used at the end
  std::shared_ptr<hal::InterpretedModel> interpreted_;  // made when it is needed
  std::vector<Refused> refused_;                        // the last shapes that cannot be planned
  std::string cacheProblem_;
};

}  // namespace hearth::cpu
