// SPDX-License-Identifier: Apache-2.0
// Connects one prepared model with the segment store: finds the model's packed weights there, and
// publishes those that had to be packed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/weights/corruption_watch.h"
#include "drivers/cpu/weights/model_contents.h"
#include "drivers/cpu/weights/model_plans.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "drivers/cpu/weights/plan_keys.h"
#include "drivers/cpu/weights/segment_publisher.h"
#include "drivers/cpu/weights/start_outcome.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::cpu {

struct StoredPacking;
struct TakenSegments;

// The order of calls is load(), the creation of all kernels, publish(); thread-safe from then on.
// No failure leaves this class: the packed weights are then not kept, and the start report says
// why.
class WeightSession : public std::enable_shared_from_this<WeightSession> {
 public:
  // `threads` is how many threads may hash the model; the plan's facts also depend on it. Work in
  // the background shares `weights` and `model`.
  WeightSession(std::shared_ptr<cache::SegmentStore> store,
                std::shared_ptr<const graph::Model> model, std::shared_ptr<PackedWeights> weights,
                const hal::PrepareOptions& options, unsigned threads);

  // Bytes of the model's constants; 0 where packing them takes less time than a start from the
  // store.
  static uint64_t bytesWorthKeeping(const graph::Model& model);
  static bool isWorthKeeping(const graph::Model& model) { return bytesWorthKeeping(model) != 0; }

  // Reports what load() would find, without presetting, packing or waiting. An object for which
  // this is called is used for nothing else.
  hal::StartReport explain();

  // Presets what an earlier start packed. Where there is nothing and another process is packing the
  // model, waits for that process as long as it makes progress. `publishesLast`: publish() writes
  // all packings; otherwise large ones are written during the packing.
  void load(bool publishesLast = false);

  // Writes what was packed to the store, in the background.
  void publish();

  // Writes what was packed since publish(), in the background.
  void publishAgain();

  // Lets the store's background checks of found segments begin, as the end of prefetching does.
  void checkFound() const { store_->checkFound(); }

  // A fact of the store: bytes that an earlier process kept about the graph of this model, as this
  // build prepares it on this CPU for this number of threads. Empty when there is none, and before
  // load().
  std::vector<uint8_t> recall(std::string_view kind) const;
  // Keeps such bytes, where the store can be written; see cache::SegmentStore::remember().
  void remember(std::string_view kind, std::vector<uint8_t> bytes) const;

  // Calls `handler` from now on when a segment is found wrong that this model may use.
  void onCorrupt(const CorruptionWatch::Handler& handler);
  // Publishes segments whose bytes have been repaired, unless that was often in vain, and notes the
  // repair in the report.
  void repaired(const std::vector<std::shared_ptr<PackedSegment>>& segments);

  // Lets the pages of what load() found be prefetched in the background. Call it when all kernels
  // are built.
  void populate();

  // Records that not all of the model could be packed: nothing of it is kept, the report gives
  // `error` as the reason, and another process may build the model.
  void giveUp(const Error& error) noexcept;

  // Whether load() found everything.
  bool isWarm() const { return outcome_->isWarm(); }

  // Fills in state, reason, and the counts of bytes so far.
  void describe(hal::StartReport* report) const;

 private:
  // Calls `body`, and gives up if it throws.
  template <typename Body>
  void guarded(Body body) noexcept;
  void tryToLoad(bool publishesLast);
  void tryToPublish();
  void tryToPublishAgain();
  void tryToFinish();
  void finishLater();
  void dropTicket();
  bool identify();
  bool findPlan();
  bool presetFrom(const cache::LoadedPlan& plan);
  void presetPlaces(const StoredPacking& found);
  bool mendPlan();
  void publishPackings();
  void takeFromOthers();
  void rememberPackings();
  void finish();
  bool hasNothingNew(std::span<const cache::SegmentKey> keys) const;
  cache::StoreFailure hindrance() const;
  void noteHashed();

  const std::shared_ptr<cache::SegmentStore> store_;
  const std::shared_ptr<const graph::Model> model_;
  const std::shared_ptr<PackedWeights> weights_;
  const hal::PrepareOptions options_;
  const unsigned threads_;
  // Shared with work that is queued in the store.
  const std::shared_ptr<StartOutcome> outcome_ = std::make_shared<StartOutcome>();
  const SegmentPublisher publisher_;

  std::optional<PlanKeys> keys_;           // from load() on, unless that fails
  std::unique_ptr<ModelPlans> plans_;      // from load() on, unless that fails
  std::optional<ModelContents> contents_;  // from load() on, unless that fails
  std::shared_ptr<cache::BuildTicket> ticket_;
  std::function<void()> populate_;
  std::shared_ptr<TakenSegments> taken_;  // what other models had packed
  cache::PlanRef plan_;                   // keeps its segments from eviction
  bool isPartly_ = false;     // whether the plan that was found lacks places of this graph
  bool isKeptWhole_ = false;  // whether the store has a plan that lacks nothing
  bool isOnlyAsked_ = false;  // explain() was called
  bool isKept_ = false;       // whether there is something to publish
  bool publishesLast_ = false;
  std::atomic<bool> isAllPacked_ = false;
  std::atomic<bool> hasGivenUp_ = false;

  mutable base::Mutex mutex_;
  std::unique_ptr<CorruptionWatch> watch_;
};

}  // namespace hearth::cpu
