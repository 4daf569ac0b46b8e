// SPDX-License-Identifier: Apache-2.0
// Where packed weights and plans are kept: the one interface that a driver sees. Behind it is a
// weight store (a folder), a bundle (one file), or nothing but this process's memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "cache/identity/content_memory.h"
#include "cache/object/build_lock.h"
#include "cache/object/store_failure.h"
#include "cache/object/store_key.h"
#include "cache/plan/loaded_plan.h"
#include "cache/plan/plan_description.h"
#include "cache/segment/segment.h"
#include "cache/store/store_options.h"

namespace hearth::cache {

// Leave to build one segment, or the reason not to. Move-only; hold it until the segment is
// published (publishAsync takes it along). Holding one while waiting for another is safe only if
// the first gets published without the waiting thread.
class BuildTicket {
 public:
  enum class Role {
    kBuild,  // build and publish; others wait for it
    kFound,  // the segment is there
    kAlone,  // build for the caller only: locks do not work here, or the builder does not get on
  };
  BuildTicket() = default;
  // `guard` goes when the ticket is released.
  explicit BuildTicket(BuildLock::Hold hold, std::shared_ptr<void> guard = nullptr)
      : role_(Role::kBuild), hold_(std::move(hold)), guard_(std::move(guard)) {}
  explicit BuildTicket(SegmentRef segment) : role_(Role::kFound), segment_(std::move(segment)) {}

  Role role() const { return role_; }
  // With kFound only.
  const SegmentRef& segment() const { return segment_; }
  // Lets the next one build.
  void release() {
    guard_.reset();
    hold_.release();
  }

 private:
  Role role_ = Role::kAlone;
  SegmentRef segment_;
  BuildLock::Hold hold_;
  std::shared_ptr<void> guard_;
};

struct PublishRequest {
  std::optional<SegmentKey> key;      // none: contentSegmentKey(payload), computed by the store
  std::span<const uint8_t> payload;   // not changed any more as long as `owner` lives
  std::shared_ptr<const void> owner;  // keeps the payload's memory
  BuildTicket ticket;                 // released when done
  // Whether the payload is memory of somebody else, who may change it although he must not: what is
  // written is compared with what was hashed, and kChanged where it is not the same.
  bool mayChange = false;
  // With a key of none: called at most once, before `done`, with a mapping of the payload in a file
  // that may become the segment. Whoever lays it over the payload (layOver) gives that memory back
  // before the payload is hashed. The segment's data() is the mapping's where it did become the
  // segment. Threads as `done`; on the caller's where much is queued. May be empty.
  std::function<void(const memory::Mapping& copy)> copied;
  // Called once, unless the process forks or dies: with the segment, which may lie elsewhere than
  // the payload (then Segment::mapOver can give the payload's memory back), or with the reason why
  // there is none. On a thread of the store or on the caller's. May be empty.
  std::function<void(StoreResult<SegmentRef>)> done;
};

// Bytes that a driver wants to find again: what it measured or tested on this machine.
struct Fact {
  std::string key;  // a name of the kind of fact, a zero byte, and all that the fact depends on
  std::vector<uint8_t> value;
};

// What happened since the store was opened in this process.
struct StoreCounters {
  uint64_t segmentsFound = 0;
  uint64_t segmentsWritten = 0;
  uint64_t bytesWritten = 0;
  uint64_t segmentsCorrupt = 0;
  uint64_t segmentsChecked =
      0;                      // read to the end and found right, in the background or at the exit
  uint64_t bytesChecked = 0;  // what was read for that
  uint64_t bytesHashed = 0;   // by contentHash
};

// How many plans a store keeps for later starts.
enum class PlanCapacity {
  kNone,  // what is published does not outlive the process (AnonymousStore)
  kOne,   // with all its segments (BundleStore)
  kMany,  // of all models, versions and builds (WeightStore)
};

// One place for packed weights as one process uses it. No failure is fatal: without the store the
// caller works from private memory. Thread-safe. Usable in a forked child, which starts its own
// threads and leaves to the parent what was queued there (completions of the parent's publishAsync
// do not come).
class SegmentStore {
 public:
  SegmentStore() = default;
  SegmentStore(const SegmentStore&) = delete;
  SegmentStore& operator=(const SegmentStore&) = delete;
  // Finishes what publishAsync was given.
  virtual ~SegmentStore() = default;

  virtual PlanCapacity planCapacity() const = 0;
  // kNone, or why nothing that is published outlives the process, with a sentence.
  virtual StoreFailure writability() const = 0;

  // A segment, read-only. A wrong size cannot be told here: the caller compares it with what the
  // operation needs.
  virtual FoundSegment find(const SegmentKey& key) = 0;

  // Waits until the caller may build the segment or it is there, and never fails. `patience`: how
  // long nothing may move before the caller builds alone.
  virtual BuildTicket acquire(const SegmentKey& key, std::chrono::nanoseconds patience) = 0;
  BuildTicket acquire(const SegmentKey& key) { return acquire(key, std::chrono::seconds(10)); }

  // Publishes in the background; waits while much is queued.
  virtual void publishAsync(PublishRequest request) = 0;
  // Calls `task` in the background when all that was given to publishAsync before is done: the
  // place for publishPlan, which is off the start path there. Runs it at once where there is no
  // background.
  virtual void afterPublishing(std::function<void()> task) = 0;
  // Returns when all that was queued before is done; false when nothing moved for `patience`.
  virtual bool flushFor(std::chrono::nanoseconds patience) = 0;
  void flush() { static_cast<void>(flushFor(std::chrono::nanoseconds::max())); }
  // The same, and when all of it is synced, marked and checked.
  virtual void settle() = 0;
  // Lets the background checks of what find() gave begin soon: a start calls it when it has what it
  // needs, since the checks would compete with it and with the first inferences. Else only settle()
  // and checkBeforeExit() begin them. A forked child calls it for what its parent has found: it has
  // no thread that checks until then.
  virtual void checkFound() = 0;
  // Checks here a part of what find() gave and no check has come to the end of, so that processes
  // that are too short for the background check do not go on using something damaged for ever. How
  // far it came is remembered: the next process, and a check in the background, goes on from there.
  // Where nothing can be remembered it is a small part from a random place on.
  virtual void checkBeforeExit() = 0;

  // How soon checkFound() is, and how much checkBeforeExit() checks: what it comes to in that time,
  // but not less than one part and not more than the other.
  static constexpr std::chrono::milliseconds kCheckDelay{1000};
  static constexpr std::chrono::milliseconds kCheckTimeBeforeExit{100};
  static constexpr size_t kLeastCheckedBeforeExit = size_t{1} << 20;
  static constexpr size_t kCheckedBeforeExit = size_t{32} << 20;
  // Of what cannot be remembered.
  static constexpr size_t kSampledBeforeExit = size_t{4} << 20;

  // A plan, every byte checked. kAbsent, kCorrupt, kForeign, kIoError; of a bundle also kOtherPlan.
  virtual StoreResult<PlanRef> findPlan(const PlanKey& key) = 0;
  // Replaces the plan of this key, or, in a bundle, the bundle's content. To be called whenever a
  // segment was published, even if the plan had been found: only this makes a bundle whole.
  // Reasons: kReadOnly, kNoSpace, kOverLimit, kIoError, kGone, kBadRequest; in a bundle also
  // kAbsent, when one of the segments is not there.
  virtual StoreResult<PlanRef> publishPlan(const PlanKey& key, std::span<const uint8_t> bytes,
                                           std::span<const SegmentKey> segments,
                                           const PlanDescription& description) = 0;
  StoreResult<PlanRef> publishPlan(const PlanKey& key, std::span<const uint8_t> bytes,
                                   std::span<const SegmentKey> segments) {
    return publishPlan(key, bytes, segments, PlanDescription{});
  }

  // Digest of a range of a file (hashContent), remembered by the file's identity. The file's bytes
  // are read only if it may have changed. Error: kBadData when the file is shorter, kIo.
  virtual Result<base::Sha256Digest> contentHash(const ContentSource& source, unsigned threads) = 0;
  // The same of the file as it is now.
  Result<base::Sha256Digest> contentHash(int fd, uint64_t offset, uint64_t size) {
    return contentHash(ContentSource::of(fd, offset, size), 0);
  }

  // The same where it is remembered; nothing is read. For ranges of which nobody knows whether
  // they are worth hashing.
  virtual std::optional<base::Sha256Digest> recalledContentHash(const ContentSource& source) = 0;

  // What this or an earlier process left under a key of its own. May be forgotten at any time; as
  // right as what was remembered.
  virtual std::optional<std::vector<uint8_t>> recall(std::string_view key) = 0;
  // Keeps facts for later processes: for the background. A weight store has them, durably, when it
  // returns, a bundle when what is queued is done. Nothing happens where nothing can be written.
  // Limits: kFactLimits.
  virtual void remember(std::span<const Fact> facts) = 0;

  // Calls `handler` on a thread of the store when a segment in use turns out wrong, until the
  // result is destroyed; a call that has begun by then may go on.
  using CorruptionHandler = std::function<void(const SegmentKey&)>;
  virtual std::shared_ptr<void> addCorruptionHandler(CorruptionHandler handler) = 0;
  // For those whose handlers pack anew in afterPublishing(): its thread is there from now on. The
  // checks are on an idle thread, and one that is started by that would often have to be idle, too.
  virtual void expectRepairs() = 0;

  virtual StoreCounters counters() const = 0;
};

}  // namespace hearth::cache
