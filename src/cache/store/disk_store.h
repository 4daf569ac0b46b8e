// SPDX-License-Identifier: Apache-2.0
// What the stores share that keep segments in files: a writing thread, a checking thread, and the
// functions that wait for them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/fork_aware.h"
#include "base/task_thread.h"
#include "cache/segment/block_checks.h"
#include "cache/segment/segment_payload.h"
#include "cache/store/corruption_handlers.h"
#include "cache/store/segment_store.h"
#include "cache/store/store_counters.h"

namespace hearth::cache {

// All state that the store's threads change. A forked child makes a new one and leaves the old one,
// whose threads it does not have, untouched.
struct StoreWorkers {
  // `name` is the name of the writing thread. `handlers` are called for wrong segments.
  StoreWorkers(const char* name, BlockChecks::Memory memory,
               std::shared_ptr<CorruptionHandlers> corruptionHandlers);

  // Adds a check, which begins with the others: once checkFound() or settle() asks for it.
  void addCheck(std::shared_ptr<BlockCheck> check);
  // For a forked child: takes over what the parent's threads were to do for models that the child
  // goes on using. These are the checks, and the handlers' calls for segments known to be wrong.
  void inherit(StoreWorkers& parent, const std::vector<SegmentKey>& wrong);
  // Finishes the writing that is queued. Nothing may be queued from now on.
  void stop();

  const std::shared_ptr<CorruptionHandlers> handlers;
  BlockChecks checks;
  StoreTally tally;                  // of all but the bytes hashed
  std::atomic<uint64_t> hashed = 0;  // bytes of models
  base::TaskThread writer;
  base::TaskThread checker;

 private:
  void holdChecks();
};

class DiskStore : public SegmentStore, protected base::ForkAware {
 public:
  using SegmentStore::SegmentStore;

  void publishAsync(PublishRequest request) override;
  void afterPublishing(std::function<void()> task) override;
  bool flushFor(std::chrono::nanoseconds patience) override;
  bool freeMemory() override;
  void settle() override;
  void checkFound() override;
  void checkBeforeExit() override;
  std::shared_ptr<void> addCorruptionHandler(CorruptionHandler handler) override;
  void expectRepairs() override;
  StoreCounters counters() const override;

 protected:
  // The workers of this process.
  virtual StoreWorkers& workers() const = 0;
  // Writes a segment and returns a mapping of it, or of the equal one that is there already.
  virtual StoreResult<SegmentRef> publish(const SegmentKey& key, const SegmentPayload& payload) = 0;
};

}  // namespace hearth::cache
