// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cache/store/segment_store.h"

namespace hearth::cache {

class AnonymousTable;

// A store without files: what one model of this process packed serves its other signatures and the
// process's other models, as long as somebody uses it. A segment is the publisher's own memory. All
// objects of this class share one table. Thread-safe.
class AnonymousStore : public SegmentStore {
 public:
  // `why` is what writability() returns.
  explicit AnonymousStore(StoreFailure why);

  StoreFailure writability() const override { return why_; }
  FoundSegment find(const SegmentKey& key) override;
  // Publishes before it returns. Memory without an owner is copied.
  void publishAsync(PublishRequest request) override;
  void afterPublishing(std::function<void()> task) override { task(); }
  bool flushFor(std::chrono::nanoseconds) override { return true; }
  bool freeMemory() override { return false; }
  void settle() override {}
  void checkFound() override {}
  void checkBeforeExit() override {}
  // Finds a plan while somebody holds it.
  StoreResult<PlanRef> findPlan(const PlanKey& key) override;
  std::optional<std::vector<uint8_t>> recall(std::string_view key) override;
  void remember(std::span<const Fact> facts) override;
  // Never calls a handler: nothing is found wrong here.
  std::shared_ptr<void> addCorruptionHandler(CorruptionHandler handler) override;
  void expectRepairs() override {}
  StoreCounters counters() const override;

 private:
  std::shared_ptr<BuildLock> builders() override;
  StoreResult<PlanRef> keepPlan(PlanContent content) override;
  ContentDigests contentDigests() override;

  const StoreFailure why_;
  AnonymousTable& table_;
};

}  // namespace hearth::cache
