// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "base/result.h"
#include "cache/object/store_key.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/weights/packed_segment.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "graph/model.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {

// Packs those of a model's packed weights again that turned out wrong or were lost, and maps the
// right bytes over them while executions go on. Not thread-safe, but for hasWrong().
class WeightRepair {
 public:
  using Segments = std::vector<std::shared_ptr<PackedSegment>>;

  WeightRepair(std::shared_ptr<const graph::Model> model, std::shared_ptr<PackedWeights> weights,
               std::shared_ptr<threads::ThreadPool> pool)
      : model_(std::move(model)), weights_(std::move(weights)), pool_(std::move(pool)) {}

  // Sets what the program's operators said of the model. Before anything is repaired.
  void setCustoms(PreparedCustoms customs) { customs_ = std::move(customs); }

  // Records that the store found this segment wrong. Where there is no memory for the record, all
  // published segments of the model count as wrong.
  void noteWrong(const cache::SegmentKey& key) noexcept;
  // Records the segments of the model that the store knows to be wrong, as a forked child has to:
  // who was about to repair them is a thread of its parent.
  void noteKnownWrong();
  // Whether a segment that was recorded as wrong is not yet replaced. Thread-safe.
  bool hasWrong() const { return hasWrong_.load(std::memory_order_relaxed); }

  // Replace the segments that were recorded as wrong, or that have lost pages. The result are the
  // replaced segments, for WeightSession::repaired(). `referenceOnly` are the operations that
  // XNNPACK refuses. An error or exception leaves the record as it was.
  Result<Segments> replaceWrong(const std::set<uint32_t>& referenceOnly);
  Result<Segments> replaceLost(const std::set<uint32_t>& referenceOnly);

 private:
  // Packs everything that `fresh` does not have.
  Status packInto(PackedWeights* fresh, const std::set<uint32_t>& referenceOnly) const;
  // Replaces the segments that have lost pages, and those that `isWrong` names.
  Result<Segments> packAgain(const std::set<uint32_t>& referenceOnly,
                             const std::function<bool(const PackedSegment&)>& isWrong);

  const std::shared_ptr<const graph::Model> model_;
  const std::shared_ptr<PackedWeights> weights_;
  const std::shared_ptr<threads::ThreadPool> pool_;
  PreparedCustoms customs_;
  std::set<cache::SegmentKey> wrong_;
  bool areAllWrong_ = false;
  std::atomic<bool> hasWrong_ = false;
};

}  // namespace hearth::cpu
