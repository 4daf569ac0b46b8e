// SPDX-License-Identifier: Apache-2.0
// Where packed weights and plans are kept: the only interface that a driver sees. Behind it is a
// weight store (a folder), a bundle (one file), or only this process's memory.
#pragma once

#include <atomic>
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
#include "cache/plan/plan_file.h"
#include "cache/segment/segment.h"
#include "cache/store/build_ticket.h"
#include "cache/store/fact.h"
#include "cache/store/publish_request.h"
#include "cache/store/segment_writer.h"
#include "cache/store/store_counters.h"
#include "cache/store/store_options.h"

namespace hearth::cache {

// How many plans a store keeps for later starts. It decides what a driver may refer to: a plan of
// which other model is found again, and a segment from outside, which in a bundle the next plan
// replaces.
enum class PlanCapacity {
  kNone,  // what is published does not outlive the process (AnonymousStore)
  kOne,   // with all its segments (BundleStore)
  kMany,  // of all models, versions and builds (WeightStore)
};

// A place for packed weights, as one process uses it. No failure is fatal: without the store the
// caller works from private memory. Thread-safe. A forked child may use it: it starts threads of
// its own and leaves to the parent what was queued there (completions of the parent's publishAsync
// are not called in the child).
class SegmentStore {
 public:
  explicit SegmentStore(PlanCapacity capacity) : capacity_(capacity) {}
  SegmentStore(const SegmentStore&) = delete;
  SegmentStore& operator=(const SegmentStore&) = delete;
  // Finishes all that publishAsync was given.
  virtual ~SegmentStore() = default;

  PlanCapacity planCapacity() const { return capacity_; }
  // kNone, or the reason, with a sentence, why nothing that is published outlives the process.
  virtual StoreFailure writability() const = 0;

  // Returns a segment, read-only. The caller compares its size with what the operation needs, since
  // the store cannot know.
  virtual FoundSegment find(const SegmentKey& key) = 0;

  // Waits until the caller may build the segment or the segment is there. Never fails. `patience`:
  // how long no builder may make progress before the caller builds alone.
  BuildTicket acquire(const SegmentKey& key,
                      std::chrono::nanoseconds patience = std::chrono::seconds(10));

  // Publishes in the background. Blocks while much is queued.
  virtual void publishAsync(PublishRequest request) = 0;
  // Begins to write a payload of `size` bytes that is made in parts. Null where the store cannot do
  // that, or not now: publishAsync() of the whole payload then tells the reason.
  virtual std::unique_ptr<SegmentWriter> beginWriting([[maybe_unused]] size_t size) {
    return nullptr;
  }
  // Calls `task` in the background once everything given to publishAsync before is done: the place
  // for publishPlan, which is then off the start path. A store without a background thread calls it
  // at once.
  virtual void afterPublishing(std::function<void()> task) = 0;
  // Returns true when all that was queued before is done, false when nothing moved for `patience`.
  virtual bool flushFor(std::chrono::nanoseconds patience) = 0;
  void flush() { static_cast<void>(flushFor(std::chrono::nanoseconds::max())); }
  // Writes what is queued, which frees the memory that it lies in. Returns false if the store holds
  // no memory that it could free: another attempt without the store would find no more than before.
  virtual bool freeMemory() = 0;
  // Like flush(), but also waits until all of it is synced, renamed and checked.
  virtual void settle() = 0;
  // Lets the background checks of segments that find() returned begin soon. A start calls it when
  // it has what it needs, since the checks compete with it and with the first inferences. Otherwise
  // only settle() and checkBeforeExit() begin them. A forked child calls it for what its parent has
  // found: until then it has no checking thread.
  virtual void checkFound() = 0;
  // Checks, on the calling thread, a part of the found segments that are not yet checked to the
  // end. Without this, processes too short for the background check would use a damaged segment for
  // ever. The position is remembered, and the next process or a background check goes on from
  // there. Where nothing can be remembered, checks a small part from a random place on.
  virtual void checkBeforeExit() = 0;

  // When checkFound() begins, and how much checkBeforeExit() checks: as much as it can in that
  // time, but at least and at most so many bytes.
  static constexpr std::chrono::milliseconds kCheckDelay{1000};
  static constexpr std::chrono::milliseconds kCheckTimeBeforeExit{100};
  static constexpr size_t kLeastCheckedBeforeExit = size_t{1} << 20;
  static constexpr size_t kCheckedBeforeExit = size_t{32} << 20;
  // Bytes that are checked where nothing can be remembered.
  static constexpr size_t kSampledBeforeExit = size_t{4} << 20;

  // Returns a plan, every byte of it checked. Errors: kAbsent, kCorrupt, kForeign, kIoError; of a
  // bundle also kOtherPlan.
  virtual StoreResult<PlanRef> findPlan(const PlanKey& key) = 0;
  // What a store that keeps one plan says of it, whatever its key; none where there is no plan, and
  // in stores that keep many.
  virtual std::optional<PlanDescription> heldPlan() { return std::nullopt; }
  // Replaces the plan of this key or, in a bundle, the bundle's content. To be called whenever a
  // segment was published, even if the plan had been found: only this makes a bundle complete.
  // Errors: kReadOnly, kNoSpace, kOverLimit, kIoError, kGone, kBadRequest; of a bundle also
  // kAbsent, when one of the segments is not there.
  StoreResult<PlanRef> publishPlan(const PlanKey& key, std::span<const uint8_t> bytes,
                                   std::span<const SegmentKey> segments,
                                   const PlanDescription& description = {});

  // Returns the digest of a range of a file (hashContent), remembered under the file's identity.
  // The bytes are read only if they may have changed; then `tags`, unless it is null, gets their
  // tags, if the store can keep names. Errors: kBadData when the file is shorter, kIo.
  Result<base::Sha256Digest> contentHash(const ContentSource& source, unsigned threads,
                                         std::optional<ContentTags>* tags = nullptr);
  // The same for the file as it is now.
  Result<base::Sha256Digest> contentHash(int fd, uint64_t offset, uint64_t size) {
    return contentHash(ContentSource::of(fd, offset, size), 0);
  }

  // The same if it is remembered; nothing is read. For ranges that may not be worth hashing.
  std::optional<base::Sha256Digest> recalledContentHash(const ContentSource& source);

  // Reads a range of a file and makes its tags, in a fraction of contentHash's time. None where the
  // store keeps no names of contents, or has none yet. Errors as contentHash.
  Result<std::optional<ContentTags>> contentTags(const ContentSource& source, unsigned threads);
  // The contentHash of the content with these tags, which were read from `source`, if it was
  // computed before, of whatever file.
  std::optional<base::Sha256Digest> namedContentHash(const ContentSource& source,
                                                     const ContentTags& tags);

  // Returns the fact that this or an earlier process stored under `key`. A fact may be forgotten at
  // any time, but is never altered.
  virtual std::optional<std::vector<uint8_t>> recall(std::string_view key) = 0;
  // Keeps facts for later processes; to be called in the background. A weight store has written
  // them durably when this returns, a bundle when what is queued is done. Does nothing where
  // nothing can be written. Limits: kFactLimits.
  virtual void remember(std::span<const Fact> facts) = 0;

  // Calls `handler` on a thread of the store when a segment in use turns out wrong, until the
  // result is destroyed. A call that has begun by then may go on.
  using CorruptionHandler = std::function<void(const SegmentKey&)>;
  virtual std::shared_ptr<void> addCorruptionHandler(CorruptionHandler handler) = 0;
  // To be called by users whose handlers repair in afterPublishing(): starts the thread for that.
  // If a handler started it, on the idle thread of the checks, it would often have to stay idle as
  // well.
  virtual void expectRepairs() = 0;

  virtual StoreCounters counters() const = 0;

 protected:
  // The lock among those who build segments of this store; null when nobody waits for what the
  // caller builds.
  virtual std::shared_ptr<BuildLock> builders() = 0;
  // Called when the caller of acquire() holds the lock, to make its ticket.
  virtual BuildTicket beginBuilding(const SegmentKey& key, std::chrono::nanoseconds patience,
                                    BuildLock::Hold hold);
  // Does what publishPlan says. The content names no fingerprint.
  virtual StoreResult<PlanRef> keepPlan(PlanContent content) = 0;

  // Where digests of contents are remembered (null: nowhere), and how many bytes were hashed.
  struct ContentDigests {
    ContentMemory* memory;
    std::atomic<uint64_t>& hashed;
  };
  virtual ContentDigests contentDigests() = 0;

 private:
  const PlanCapacity capacity_;
};

}  // namespace hearth::cache
