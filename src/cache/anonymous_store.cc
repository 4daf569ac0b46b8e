// SPDX-License-Identifier: Apache-2.0
#include "cache/anonymous_store.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/fork_aware.h"
#include "base/immortal.h"
#include "base/mutex.h"
#include "cache/identity/content_hash.h"
#include "cache/identity/content_memory.h"
#include "memory/mapping.h"

namespace hearth::cache {

// What all models of this process have packed, while it is in use. Thread-safe.
class AnonymousTable : public ContentMemory, private base::ForkAware {
 public:
  static AnonymousTable& instance() {
    static constinit base::Immortal<AnonymousTable> table;
    return table.get([] {
      const std::lock_guard lock(registryMutex());
      return AnonymousTable(lock);
    });
  }

  SegmentRef find(const SegmentKey& key) {
    const std::lock_guard lock(mutex_);
    const auto entry = segments_.find(key);
    if (entry == segments_.end()) return nullptr;
    Entry& known = entry->second;
    if (SegmentRef segment = known.segment.lock()) return segment;
    // The segment object is gone, but its memory is still there.
    std::shared_ptr<const void> owner = known.owner.lock();
    if (owner == nullptr) return nullptr;
    auto segment = std::make_shared<const Segment>(key, known.bytes, std::move(owner));
    known.segment = segment;
    return segment;
  }

  // Adds this segment, unless one of the same size is there already; returns the one that counts.
  SegmentRef add(const SegmentKey& key, std::span<const uint8_t> bytes,
                 std::shared_ptr<const void> owner) {
    if (SegmentRef present = find(key); present && present->size() == bytes.size()) return present;
    const std::lock_guard lock(mutex_);
    const std::weak_ptr<const void> weakOwner = owner;
    auto segment = std::make_shared<const Segment>(key, bytes, std::move(owner));
    segments_[key] = {.owner = weakOwner, .bytes = bytes, .segment = segment};
    forgetUnused(segments_, [](const Entry& entry) {
      return entry.owner.expired() && entry.segment.expired();
    });
    return segment;
  }

  PlanRef findPlan(const PlanKey& key) {
    const std::lock_guard lock(mutex_);
    const auto plan = plans_.find(key);
    return plan == plans_.end() ? nullptr : plan->second.lock();
  }

  void addPlan(const PlanRef& plan) {
    const std::lock_guard lock(mutex_);
    plans_[plan->content().key] = plan;
    forgetUnused(plans_, [](const auto& weak) { return weak.expired(); });
  }

  std::optional<base::Sha256Digest> content(const FileIdentity& file, uint64_t offset,
                                            uint64_t size) override {
    const std::lock_guard lock(mutex_);
    const auto known = contents_.find(contentKey(file, offset, size));
    if (known == contents_.end() || !isReadWellAfterChange(file, known->second.second))
      return std::nullopt;
    return known->second.first;
  }

  void rememberContent(const FileIdentity& file, uint64_t offset, uint64_t size,
                       const base::Sha256Digest& digest, int64_t readAt) override {
    constexpr size_t kMostContents = 4096;
    const std::lock_guard lock(mutex_);
    if (contents_.size() >= kMostContents) contents_.clear();
    contents_[contentKey(file, offset, size)] = {digest, readAt};
  }

  std::shared_ptr<BuildLock> buildLock() {
    const std::lock_guard lock(mutex_);
    return buildLock_;
  }

  StoreTally tally;
  std::atomic<uint64_t> hashed = 0;

 private:
  struct Entry {
    std::weak_ptr<const void> owner;
    std::span<const uint8_t> bytes;  // valid while `owner` is
    std::weak_ptr<const Segment> segment;
  };

  explicit AnonymousTable(const std::lock_guard<base::Mutex>& held) { joinForkRegistry(held); }

  // Looks only when a map has doubled, so that adding stays cheap.
  template <typename Map, typename IsUnused>
  void forgetUnused(Map& map, IsUnused isUnused) {
    constexpr size_t kWorthLooking = 64;
    if (map.size() < kWorthLooking || map.size() < 2 * kept_) return;
    std::erase_if(map, [&](const auto& entry) { return isUnused(entry.second); });
    kept_ = std::max(segments_.size(), plans_.size());
  }

  // The child has none of the threads that were building.
  void renewInChild() override { buildLock_ = BuildLock::inProcess(); }

  base::Mutex mutex_;
  std::shared_ptr<BuildLock> buildLock_ = BuildLock::inProcess();
  std::unordered_map<SegmentKey, Entry> segments_;
  std::unordered_map<PlanKey, std::weak_ptr<const LoadedPlan>> plans_;
  std::map<base::Sha256Digest, std::pair<base::Sha256Digest, int64_t>> contents_;
  size_t kept_ = 0;
};

AnonymousStore::AnonymousStore(StoreFailure why)
    : SegmentStore(PlanCapacity::kNone), why_(std::move(why)), table_(AnonymousTable::instance()) {}

FoundSegment AnonymousStore::find(const SegmentKey& key) {
  SegmentRef segment = table_.find(key);
  if (segment == nullptr) return {.reason = StoreReason::kAbsent};
  table_.tally.add(&StoreCounters::segmentsFound);
  return {.segment = std::move(segment)};
}

std::shared_ptr<BuildLock> AnonymousStore::builders() {
  return table_.buildLock();
}

void AnonymousStore::publishAsync(PublishRequest request) {
  StoreResult<SegmentRef> result;
  const SegmentKey key = request.key ? *request.key : contentSegmentKey(request.payload);
  if (request.payload.empty()) {
    result = storeFail(StoreReason::kBadRequest, "The segment {} has no bytes.", key.hex());
  } else if (request.owner != nullptr) {
    result = table_.add(key, request.payload, std::move(request.owner));
  } else if (auto copy = memory::Mapping::anonymous(request.payload.size())) {
    const auto owner = std::make_shared<memory::Mapping>(std::move(*copy));
    std::memcpy(owner->data(), request.payload.data(), request.payload.size());
    result = table_.add(key, {owner->data(), request.payload.size()}, owner);
  } else {
    result = storeFail(StoreReason::kNoSpace, "{}", copy.error().toString());
  }
  if (result) table_.tally.add(&StoreCounters::segmentsWritten);
  table_.buildLock()->noteProgress();
  // Called before the next builder may look for the segment, which only the receiver keeps alive.
  if (request.done) request.done(result);
  request.ticket.release();
}

StoreResult<PlanRef> AnonymousStore::findPlan(const PlanKey& key) {
  if (PlanRef plan = table_.findPlan(key)) return plan;
  return storeFail(StoreReason::kAbsent, "There is no plan {}.", key.hex());
}

StoreResult<PlanRef> AnonymousStore::keepPlan(PlanContent content) {
  const auto plan = std::make_shared<LoadedPlan>(std::move(content), base::Descriptor());
  table_.addPlan(plan);
  return plan;
}

SegmentStore::ContentDigests AnonymousStore::contentDigests() {
  return {&table_, table_.hashed};
}

// Users keep their facts themselves while the process lives.
std::optional<std::vector<uint8_t>> AnonymousStore::recall(std::string_view) {
  return std::nullopt;
}

void AnonymousStore::remember(std::span<const Fact>) {}

std::shared_ptr<void> AnonymousStore::addCorruptionHandler(CorruptionHandler) {
  return nullptr;
}

StoreCounters AnonymousStore::counters() const {
  StoreCounters counters = table_.tally.counters();
  counters.bytesHashed = table_.hashed;
  return counters;
}

}  // namespace hearth::cache
