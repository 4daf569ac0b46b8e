// SPDX-License-Identifier: Apache-2.0
// How one prepared model gets its packed weights from the segment store, and leaves them there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/platform/build_identity.h"
#include "drivers/cpu/weights/model_contents.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "drivers/cpu/weights/plan_record.h"
#include "drivers/cpu/weights/stored_plan.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::cpu {

// The order of calls: load(), the creation of all kernels, publish(). Thread-safe from then on. No
// failure gets out of here: the model is then not kept, and the report says why.
class WeightSession : public std::enable_shared_from_this<WeightSession> {
 public:
  // `threads`: how many may work at start. `weights` and `model` are shared with work that goes on
  // in the background.
  WeightSession(std::shared_ptr<cache::SegmentStore> store,
                std::shared_ptr<const graph::Model> model, std::shared_ptr<PackedWeights> weights,
                const hal::PrepareOptions& options, unsigned threads);

  // How many bytes of constants a model has; 0 where packing them costs less than a start from the
  // store.
  static uint64_t bytesWorthKeeping(const graph::Model& model);
  static bool isWorthKeeping(const graph::Model& model) { return bytesWorthKeeping(model) != 0; }

  // What load() would find, without presetting, packing or waiting. Nothing else is called then.
  hal::StartReport explain();

  // Presets what an earlier start packed. When nothing is there and another process is at it,
  // waits for it, as long as it gets on. `publishesLast`: what is packed is written by publish()
  // and not while packing goes on.
  void load(bool publishesLast = false);

  // Writes what was packed into the store, in the background.
  void publish();

  // The same for what was packed since then.
  void publishAgain();

  // Lets the store check what load() found, as it lets it itself when the start is over.
  void checkFound() const { store_->checkFound(); }

  // Bytes that an earlier process left about the graph of this model, as it is prepared by this
  // build on this CPU for so many threads; empty when there are none. From load() on.
  std::vector<uint8_t> recall(std::string_view kind) const;
  // Leaves them, where the store can be written, as cache::SegmentStore::remember() does.
  void remember(std::string_view kind, std::vector<uint8_t> bytes) const;

  // Calls `handler` on a thread of the store when the background check finds a segment wrong that
  // this model may use.
  void onCorrupt(const std::function<void(const cache::SegmentKey&)>& handler);
  // The segments hold right bytes again: they are written anew, and reported.
  void repaired(const std::vector<std::shared_ptr<PackedSegment>>& segments);

  // When all kernels are made: brings in the pages of what load() found, in the background.
  void populate();

  // For a model of which not all could be packed: others may build it, and nothing is kept of it.
  void giveUp(const Error& error) noexcept;

  // Whether load() found everything.
  bool isWarm() const;

  // State, reason, bytes packed and mapped as of now.
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
  PlanRecord findRecord();
  bool presetFrom(const cache::LoadedPlan& plan);
  cache::PlanKey planKey() const;
  std::string factKey(std::string_view kind) const;
  bool mendPlan();
  bool lacksPlaces() const;
  void publishOwn();
  void publishSegment(const std::shared_ptr<PackedSegment>& packed, size_t size,
                      bool isCopiedFirst = false);
  void finish();
  StoredPlan currentPlan(std::vector<cache::SegmentKey>* keys) const;
  void addOthers(StoredPlan* stored, std::vector<cache::SegmentKey>* keys) const;
  bool hasNothingNew(const std::vector<cache::SegmentKey>& keys) const;
  cache::StoreFailure hindrance() const;
  void setUncached(const cache::StoreFailure& why);
  void noteHashed();
  void fail(cache::StoreReason reason, const std::string& message);
  std::string modelName() const;

  const std::shared_ptr<cache::SegmentStore> store_;
  const std::shared_ptr<const graph::Model> model_;
  const std::shared_ptr<PackedWeights> weights_;
  const hal::PrepareOptions options_;
  const unsigned threads_;

  const BuildIdentity* build_ = nullptr;  // from load() on, unless that fails
  base::Sha256Digest structure_{};
  base::Sha256Digest planOptions_{};
  base::Sha256Digest graph_{};             // both
  std::optional<ModelContents> contents_;  // as build_
  std::shared_ptr<cache::BuildTicket> ticket_;
  std::function<void()> populate_;
  cache::PlanRef plan_;       // keeps its segments from garbage collection
  bool isPartly_ = false;     // whether places of this graph are missing in it
  bool isKeptWhole_ = false;  // whether one is kept that lacks nothing
  bool isOnlyAsked_ = false;
  bool isKept_ = false;  // whether there is something to publish
  bool publishesLast_ = false;
  std::atomic<bool> isAllPacked_ = false;
  std::atomic<bool> hasGivenUp_ = false;

  mutable base::Mutex mutex_;
  hal::StartReport::State state_ = hal::StartReport::State::kUncached;
  std::string reason_;
  uint64_t mappedBytes_ = 0;
  uint64_t repackedBytes_ = 0;
  uint64_t repairedBytes_ = 0;
  std::shared_ptr<void> corruptionHandler_;
  uint64_t hashedBytes_ = 0;  // of contents_, as far as it is known
};

}  // namespace hearth::cpu
