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

#include "base/result.h"
#include "base/sha256.h"
#include "cache/build_lock.h"
#include "cache/plan_table.h"
#include "cache/segment_key.h"
#include "cache/segment_table.h"
#include "cache/store_collector.h"
#include "cache/store_failure.h"
#include "cache/store_inventory.h"
#include "cache/store_options.h"

namespace hearth::cache {

class IdentityTable;
struct StoreParts;

// Leave to build one segment, or the reason not to. Move-only; hold it until the segment is
// published (publishAsync takes it along). Holding one while waiting for another is safe only if
// the first gets published without the waiting thread.
class BuildTicket {
 public:
  enum class Role {
    kBuild,  // build and publish; others wait for it
    kFound,  // the segment is there
    kAlone,  // build for this process only: locks do not work here, or the builder does not get on
  };
  Role role() const { return role_; }
  // With kFound only.
  const SegmentRef& segment() const { return segment_; }
  // Lets the next one build.
  void release() { hold_.release(); }

 private:
  friend class WeightStore;
  Role role_ = Role::kAlone;
  SegmentRef segment_;
  BuildLock::Hold hold_;
};

// What happened since the store was opened in this process.
struct StoreCounters {
  uint64_t segmentsFound = 0;
  uint64_t segmentsWritten = 0;
  uint64_t bytesWritten = 0;
  uint64_t segmentsCorrupt = 0;
  uint64_t segmentsChecked = 0;  // read and found right in the background
  uint64_t bytesHashed = 0;      // by contentHash
};

// One store as one process uses it. No failure is fatal: without the store the caller works from
// private memory. Thread-safe. Usable in a forked child, which starts its own threads and leaves to
// the parent what was queued there (completions of the parent's publishAsync do not come).
class WeightStore {
 public:
  // The store of these options, the same object for every caller of the process as long as one
  // holds it. Fails when nothing can be used, with the reason.
  static StoreResult<std::shared_ptr<WeightStore>> open(const StoreOptions& options);

  // Finishes what publishAsync was given; leaves checks and syncs that are still to be done to the
  // next process.
  ~WeightStore();
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;

  const StoreOptions& options() const;
  // kNone, or why nothing can be written, with a sentence.
  StoreFailure writability() const;

  // Maps a segment read-only. Its trailer is checked now; its bytes now (strict mode, and objects
  // that a power failure may have spoiled) or in the background.
  FoundSegment find(const SegmentKey& key);

  // Waits until the caller may build the segment or it is there, and never fails. `patience`: how
  // long nothing may move in the whole store before the caller builds alone.
  BuildTicket acquire(const SegmentKey& key,
                      std::chrono::nanoseconds patience = std::chrono::seconds(10));

  // Writes a segment and gives it back mapped; visible to others only whole. When it is there
  // already that one is given. Reasons: kReadOnly, kNoSpace, kOverLimit, kIoError, kGone, ...
  StoreResult<SegmentRef> publish(const SegmentKey& key, std::span<const uint8_t> payload);

  struct PublishRequest {
    SegmentKey key;
    std::span<const uint8_t> payload;
    std::shared_ptr<const void> owner;  // keeps the payload's memory until it is written
    BuildTicket ticket;                 // released when done
    // Called once on the writer thread, unless the process forks or dies. May be empty.
    std::function<void(StoreResult<SegmentRef>)> done;
  };
  // Publishes on the writer thread; waits while 256 MiB are queued.
  void publishAsync(PublishRequest request);
  // Returns when all that was queued before is written.
  void flush();
  // The same, and when all of it is synced, marked and checked.
  void settle();

  StoreResult<PlanRef> findPlan(const PlanKey& key);
  StoreResult<PlanRef> publishPlan(const PlanKey& key, std::span<const uint8_t> bytes,
                                   std::span<const SegmentKey> segments);

  // Digest of a range of a file (hashContent), remembered by the file's identity. The file's bytes
  // are read only if it may have changed. Error: kBadData when the file is shorter, kIo.
  Result<base::Sha256Digest> contentHash(int fd, uint64_t offset, uint64_t size,
                                         unsigned threads = 0);

  // Calls `handler` on the checking thread when a segment in use turns out wrong, until the result
  // is destroyed (which waits for a call that runs; not from the handler).
  using CorruptionHandler = std::function<void(const SegmentKey&)>;
  std::shared_ptr<void> addCorruptionHandler(CorruptionHandler handler);

  StoreCounters counters() const;

  // What the user's own store holds.
  StoreResult<StoreInventory> inventory() const;
  // The most bytes that it may take on disk.
  uint64_t maxBytes() const;
  // Garbage collection (store_collector.h). kBusy while another process is at it.
  StoreResult<PruneReport> prune(const PruneOptions& options);
  // Reads and checks every byte of the user's own store, and drops what is wrong. `progress` gets
  // bytes done and in all, and ends the work by returning false.
  struct VerifyReport {
    uint64_t plans = 0;
    uint64_t segments = 0;
    uint64_t bytes = 0;
    uint64_t wrongPlans = 0;
    uint64_t wrongSegments = 0;
    bool isComplete = false;
  };
  StoreResult<VerifyReport> verifyAll(const std::function<bool(uint64_t, uint64_t)>& progress);
  // Removes one plan with the segments that no other plan uses, whoever has it loaded; kAbsent.
  StoreStatus remove(const PlanKey& key);
  // Removes all objects and everything remembered. What is mapped stays valid.
  StoreStatus removeAll();

 private:
  explicit WeightStore(std::unique_ptr<StoreFolders> folders);
  static void prepareFork();
  static void afterForkInParent();
  static void afterForkInChild();

  IdentityTable* identities() const;
  std::shared_ptr<BuildLock> buildLock() const;
  void opened(SegmentOrigin origin);
  void inspect(std::shared_ptr<SegmentOrigin> origin);
  void makeDurable();
  StoreStatus makeRoom(uint64_t bytes);
  StoreResult<PruneReport> collectIn(const StoreFolder& folder, const PruneOptions& pruneOptions);

  // All that threads of this process change; a forked child gets a new one and leaves the old one,
  // whose threads it does not have, untouched.
  StoreParts* parts_;
};

}  // namespace hearth::cache
