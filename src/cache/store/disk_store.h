// SPDX-License-Identifier: Apache-2.0
// What the stores share that keep segments in files: a thread that writes, one that checks, and
// what waits for them.
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

namespace hearth::cache {

// All that threads of this process change. A forked child gets a new one and leaves the old one,
// whose threads it does not have, untouched.
struct StoreWorkers {
  // `name` is the writing thread's. `handlers` hear of wrong segments.
  StoreWorkers(const char* name, BlockChecks::Memory memory,
               std::shared_ptr<CorruptionHandlers> corruptionHandlers);

  // The check begins with the others: once checkFound() or settle() asks for it.
  void addCheck(std::shared_ptr<BlockCheck> check);
  // What threads of the parent were to do for models that a forked child goes on with: its checks,
  // and calls for segments that are known to be wrong.
  void inherit(StoreWorkers& parent, const std::vector<SegmentKey>& wrong);
  // Finishes what is queued for writing. Nothing may be queued any more.
  void stop();

  const std::shared_ptr<CorruptionHandlers> handlers;
  BlockChecks checks;
  std::atomic<uint64_t> checked = 0;       // segments
  std::atomic<uint64_t> checkedBytes = 0;  // of them
  std::atomic<uint64_t> hashed = 0;        // bytes of models
  base::TaskThread writer;
  base::TaskThread checker;

 private:
  void holdChecks();
};

class DiskStore : public SegmentStore, protected base::ForkAware {
 public:
  void publishAsync(PublishRequest request) override;
  void afterPublishing(std::function<void()> task) override;
  bool flushFor(std::chrono::nanoseconds patience) override;
  void settle() override;
  void checkFound() override;
  void checkBeforeExit() override;
  std::shared_ptr<void> addCorruptionHandler(CorruptionHandler handler) override;
  void expectRepairs() override;

 protected:
  // Those of this process.
  virtual StoreWorkers& workers() const = 0;
  // Writes a segment and gives it back mapped, or the one that is there already.
  virtual StoreResult<SegmentRef> publish(const SegmentKey& key, const SegmentPayload& payload) = 0;
};

}  // namespace hearth::cache
