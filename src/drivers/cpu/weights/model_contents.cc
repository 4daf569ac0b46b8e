// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/model_contents.h"

#include <algorithm>
#include <mutex>

#include "base/trace.h"
#include "cache/identity/content_hash.h"
#include "cache/identity/pool_source.h"
#include "drivers/cpu/weights/in_place_constants.h"

namespace hearth::cpu {
namespace {

// Pools without a descriptor up to this size are hashed at once: that is cheap.
constexpr size_t kSmallPool = size_t{1} << 20;

}  // namespace

bool ModelContents::Pool::tellsChanges() const {
  return source && source->tellsChanges();
}

ModelContents::ModelContents(const graph::Model& model, cache::SegmentStore& store,
                             unsigned threads)
    : store_(store), threads_(threads) {
  std::vector<std::vector<cache::ContentGap>> gaps(model.pools.size());
  for (const graph::DataLocation& table : tablesOnlyLookedUp(model))
    gaps[table.pool].push_back({table.offset, table.length});
  for (size_t i = 0; i < model.pools.size(); ++i) {
    const memory::Pool& pool = *model.pools[i];
    Pool entry{.memory = &pool};
    if (pool.fd() >= 0) entry.source = cache::sourceOf(pool, std::move(gaps[i]));
    pools_.push_back(std::move(entry));
  }
}

bool ModelContents::recall() {
  for (Pool& pool : pools_) {
    if (pool.digest) continue;
    if (pool.source)
      pool.digest = store_.recalledContentHash(*pool.source);
    else if (pool.memory->size() <= kSmallPool)
      pool.digest = cache::hashContent({pool.memory->data(), pool.memory->size()});
    if (!pool.digest) return false;
  }
  return true;
}

Status ModelContents::hash(Pool& pool) {
  const uint64_t before = store_.counters().bytesHashed;
  std::optional<cache::ContentTags> tags;
  base::Sha256Digest digest;
  if (pool.source) {
    HEARTH_ASSIGN(digest, store_.contentHash(*pool.source, threads_, &tags));
  } else {
    digest = cache::hashContent({pool.memory->data(), pool.memory->size()});
  }
  const std::lock_guard lock(mutex_);
  if (pool.source) hashedBytes_ += store_.counters().bytesHashed - before;
  pool.digest = digest;
  // None where the digest was recalled without reading.
  if (tags) pool.tags = std::move(tags);
  return {};
}

Status ModelContents::tag(Pool& pool) {
  HEARTH_ASSIGN(auto tags, store_.contentTags(*pool.source, threads_));
  const std::lock_guard lock(mutex_);
  if (tags) hashedBytes_ += cache::countedBytes(pool.source->size(), pool.source->gaps());
  pool.tags = std::move(tags);
  return {};
}

Status ModelContents::look() {
  const base::TraceSpan span("start", "look at the model's bytes");
  for (Pool& pool : pools_) {
    if (pool.digest) continue;
    if (pool.source && !pool.tags) HEARTH_TRY(tag(pool));
    if (!pool.tags) {
      HEARTH_TRY(hash(pool));
    } else if (const auto digest = store_.namedContentHash(*pool.source, *pool.tags)) {
      const std::lock_guard lock(mutex_);
      pool.digest = digest;
    }
  }
  return {};
}

Status ModelContents::prepareToPack() {
  for (Pool& pool : pools_) {
    if (pool.digest || pool.tags || pool.tellsChanges()) continue;
    if (pool.source) HEARTH_TRY(tag(pool));
    if (!pool.tags) HEARTH_TRY(hash(pool));
  }
  return {};
}

Result<bool> ModelContents::isSame(Pool& pool) {
  if (pool.tellsChanges()) {
    if (!pool.digest) HEARTH_TRY(hash(pool));
    return pool.source->isUnchanged();
  }
  Pool now = pool;
  now.tags.reset();
  if (now.source) {
    const auto gaps = pool.source->gaps();
    now.source = cache::sourceOf(*now.memory, {gaps.begin(), gaps.end()});
  }
  if (pool.digest && pool.tags) {
    HEARTH_TRY(tag(now));
    if (now.tags) return now.tags == pool.tags;
  }
  HEARTH_TRY(hash(now));
  if (pool.digest) return now.digest == pool.digest;
  // The new tags are of the very bytes that were hashed, unless the digest was recalled: the file
  // has become old enough meanwhile, and another start has hashed it.
  if (pool.tags && !now.tags) {
    HEARTH_TRY(tag(now));
    if (!now.source->isUnchanged()) return false;
  }
  if (now.tags != pool.tags) return false;
  const std::lock_guard lock(mutex_);
  pool.digest = now.digest;
  return true;
}

Status ModelContents::confirm() {
  const base::TraceSpan span("start", "confirm that the model is the same");
  for (Pool& pool : pools_) {
    HEARTH_ASSIGN(const bool same, isSame(pool));
    if (!same)
      return fail(ErrorCode::kBadState,
                  "The model was changed after its weights began to be packed.");
  }
  return {};
}

bool ModelContents::isKnown() const {
  return std::ranges::all_of(pools_, [](const Pool& pool) { return pool.digest.has_value(); });
}

base::Sha256Digest ModelContents::digest() const {
  if (!isKnown()) return {};
  base::Sha256 hash;
  for (const Pool& pool : pools_) hash.update(*pool.digest);
  return hash.finish();
}

}  // namespace hearth::cpu
