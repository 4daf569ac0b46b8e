// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "drivers/cpu/execution_context.h"
#include "drivers/cpu/packed_weights.h"
#include "drivers/cpu/plan.h"
#include "drivers/cpu/weight_session.h"
#include "hal/device.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {

// A model with known shapes, planned and packed. Each concurrent computation has a context of its
// own; contexts are kept for the next one.
class CpuPreparedModel final : public hal::PreparedModel,
                               public std::enable_shared_from_this<CpuPreparedModel> {
 public:
  // kUnsupported when shapes or branches are known only at run time: the caller then takes the
  // interpreter.
  static Result<std::shared_ptr<CpuPreparedModel>> create(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      std::shared_ptr<threads::ThreadPool> pool, std::shared_ptr<cache::SegmentStore> store);

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  hal::StartReport startReport() const override;

  // One computation with memory that the request check has resolved.
  Status run(std::span<const ExecutionContext::Buffer> inputs,
             std::span<const ExecutionContext::Buffer> outputs, const base::Deadline& deadline);

  // Packs anew what a segment of the store holds whose bytes turned out wrong, in the place of
  // those, while executions go on. On a thread of the store.
  void repair(const cache::SegmentKey& key);

  // Dimensions of the graph outputs, as inferred.
  const std::vector<graph::Dimensions>& outputDimensions() const { return outputDimensions_; }
  const std::vector<uint64_t>& outputBytes() const { return outputBytes_; }

 private:
  CpuPreparedModel() = default;

  std::shared_ptr<const graph::Model> model_;
  std::shared_ptr<threads::ThreadPool> pool_;
  std::shared_ptr<PackedWeights> weights_ = std::make_shared<PackedWeights>();
  std::shared_ptr<WeightSession> session_;
  std::vector<std::unique_ptr<uint8_t[]>> ownedConstants_;
  std::set<uint32_t> referenceOnly_;  // operations that XNNPACK refused
  Plan plan_;
  std::vector<graph::Dimensions> outputDimensions_;
  std::vector<uint64_t> outputBytes_;
  hal::StartReport report_;

  std::mutex mutex_;
  std::vector<std::unique_ptr<ExecutionContext>> idle_;
};

}  // namespace hearth::cpu
