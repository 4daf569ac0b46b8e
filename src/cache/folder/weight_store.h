// SPDX-License-Identifier: Apache-2.0
// The weight store: packed weights and plans on disk, shared by all processes of a user.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/fork_aware.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/sha256.h"
#include "cache/folder/plan_table.h"
#include "cache/folder/segment_table.h"
#include "cache/folder/store_collector.h"
#include "cache/folder/store_inventory.h"
#include "cache/object/build_lock.h"
#include "cache/object/store_failure.h"
#include "cache/object/store_key.h"
#include "cache/store/disk_store.h"
#include "cache/store/store_options.h"

namespace hearth::cache {

class IdentityTable;
struct StoreParts;

// A folder, with system stores that are only read, as one process uses it.
class WeightStore final : public DiskStore {
 public:
  // Opens the store of these options. All callers in the process share one object while one of them
  // holds it. Fails with the reason when no folder can be used.
  static StoreResult<std::shared_ptr<WeightStore>> open(const StoreOptions& options);

  // Finishes what publishAsync was given; leaves the remaining checks and syncs to the next
  // process.
  ~WeightStore() override;

  const StoreOptions& options() const;
  // kNone, or the reason, with a sentence, why nothing can be written.
  StoreFailure writability() const override;

  // Maps a segment read-only. Checks its trailer now. Checks its bytes now in strict mode, and if a
  // power failure may have damaged the object; otherwise in the background.
  FoundSegment find(const SegmentKey& key) override;

  // Writes a segment and returns a mapping of it; other processes see it complete or not at all. If
  // it is there already, returns that one. Errors: kReadOnly, kNoSpace, kOverLimit, kIoError,
  // kGone, ...
  StoreResult<SegmentRef> publish(const SegmentKey& key, const SegmentPayload& payload) override;

  // A payload that is copied first (PublishRequest::copied) is written by the calling thread when
  // 16 MiB are queued, and hashed when afterPublishing says that the caller has no more: packing
  // then neither waits for the hashing nor shares its processors with it. For other payloads the
  // call blocks while 256 MiB are queued.
  void publishAsync(PublishRequest request) override;
  // What is written is hashed when afterPublishing says that the caller has no more, too.
  std::unique_ptr<SegmentWriter> beginWriting(size_t size) override;

  StoreResult<PlanRef> findPlan(const PlanKey& key) override;
  std::optional<std::vector<uint8_t>> recall(std::string_view key) override;
  void remember(std::span<const Fact> facts) override;

  // What the user's own store holds.
  StoreResult<StoreInventory> inventory() const;
  // The most bytes that the user's own store may take on disk.
  uint64_t maxBytes() const;
  // Runs garbage collection (store_collector.h). kBusy while another process does.
  StoreResult<PruneReport> prune(const PruneOptions& options);
  // Reads and checks every byte of the user's own store, and drops what is wrong. `progress` gets
  // the bytes done and the bytes in all; false ends the work.
  struct VerifyReport {
    uint64_t plans = 0, segments = 0, bytes = 0, facts = 0;
    uint64_t wrongPlans = 0, wrongSegments = 0;
    bool wrongFacts = false;  // the file that holds all of them
    bool isComplete = false;
  };
  StoreResult<VerifyReport> verifyAll(const std::function<bool(uint64_t, uint64_t)>& progress);
  // Removes a plan, even one in use, with the segments that no other plan uses; kAbsent when there
  // is none.
  StoreStatus remove(const PlanKey& key);
  // Removes all objects and everything remembered. Mappings stay valid.
  StoreStatus removeAll();

 private:
  explicit WeightStore(std::unique_ptr<StoreFolders> folders);
  void renewInChild() override;
  StoreWorkers& workers() const override;
  // The patience of acquire() ends when nothing moves in the whole store, in any process.
  std::shared_ptr<BuildLock> builders() override;
  StoreResult<PlanRef> keepPlan(PlanContent content) override;
  ContentDigests contentDigests() override;

  IdentityTable* identities() const;
  std::shared_ptr<BuildLock> buildLock() const;
  void noteProgress();
  void opened(SegmentOrigin origin);
  void publishCopied(PublishRequest request);
  void publishWritten(PublishRequest request);
  struct DraftWork;
  void finishLater(const std::shared_ptr<DraftWork>& work);
  void markLater(std::shared_ptr<SegmentOrigin> origin);
  void makeDurable();
  StoreStatus makeRoom(uint64_t bytes);
  StoreResult<PruneReport> collectIn(const StoreFolder& folder, const PruneOptions& pruneOptions);

  StoreParts* parts_;  // of this process; a forked child makes its own
};

}  // namespace hearth::cache
