// SPDX-License-Identifier: Apache-2.0
#include "cache/store/segment_store.h"

#include <utility>

#include "cache/identity/content_hash.h"

namespace hearth::cache {

BuildTicket SegmentStore::acquire(const SegmentKey& key, std::chrono::nanoseconds patience) {
  SegmentRef segment;
  const auto appeared = [&] {
    segment = find(key).segment;
    return segment != nullptr;
  };
  if (appeared()) return BuildTicket(std::move(segment));
  const std::shared_ptr<BuildLock> lock = builders();
  if (lock == nullptr) return {};
  BuildLock::Hold hold;
  switch (lock->acquire(key, patience, appeared, hold)) {
    case BuildLock::Outcome::kHeld:
      return beginBuilding(key, patience, std::move(hold));
    case BuildLock::Outcome::kAppeared:
      return BuildTicket(std::move(segment));
    case BuildLock::Outcome::kGaveUp:
      break;
  }
  return {};
}

BuildTicket SegmentStore::beginBuilding(const SegmentKey&, std::chrono::nanoseconds,
                                        BuildLock::Hold hold) {
  hold.noteProgress();
  return BuildTicket(std::move(hold));
}

StoreResult<PlanRef> SegmentStore::publishPlan(const PlanKey& key, std::span<const uint8_t> bytes,
                                               std::span<const SegmentKey> segments,
                                               const PlanDescription& description) {
  return keepPlan({.key = key,
                   .segments = {segments.begin(), segments.end()},
                   .description = description,
                   .bytes = {bytes.begin(), bytes.end()}});
}

Result<base::Sha256Digest> SegmentStore::contentHash(const ContentSource& source, unsigned threads,
                                                     std::optional<ContentTags>* tags) {
  const ContentDigests digests = contentDigests();
  return rememberedHash(source, threads, digests.memory, digests.hashed, tags);
}

std::optional<base::Sha256Digest> SegmentStore::recalledContentHash(const ContentSource& source) {
  return recalledHash(source, contentDigests().memory);
}

Result<std::optional<ContentTags>> SegmentStore::contentTags(const ContentSource& source,
                                                             unsigned threads) {
  const ContentDigests digests = contentDigests();
  const auto key = digests.memory != nullptr ? digests.memory->tagKey() : std::nullopt;
  if (!key) return std::nullopt;
  HEARTH_ASSIGN(ContentTags tags, tagContent(source.fd(), source.offset(), source.size(), threads,
                                             *key, source.gaps()));
  digests.hashed.fetch_add(countedBytes(source.size(), source.gaps()), std::memory_order_relaxed);
  return tags;
}

std::optional<base::Sha256Digest> SegmentStore::namedContentHash(const ContentSource& source,
                                                                 const ContentTags& tags) {
  ContentMemory* const memory = contentDigests().memory;
  if (memory == nullptr) return std::nullopt;
  const auto digest = memory->namedContent(tags.name());
  if (digest) rememberHash(source, *digest, *memory);
  return digest;
}

}  // namespace hearth::cache
