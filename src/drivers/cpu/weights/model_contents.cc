// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/model_contents.h"

#include <fcntl.h>

#include <algorithm>
#include <mutex>

#include "base/trace.h"
#include "cache/identity/content_hash.h"

namespace hearth::cpu {
namespace {

// Pools without a descriptor up to this size are hashed at once: that is cheap.
constexpr size_t kSmallPool = size_t{1} << 20;

// Whether the pool's file may be mapped for writing. Only the first write through such a mapping
// changes the file's times, and only when the kernel gets to it.
bool mayBeWritten(const memory::Pool& pool) {
  const int flags = ::fcntl(pool.fd(), F_GETFL);
  return pool.writable() || flags < 0 || (flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace

cache::ContentSource sourceOf(const memory::Pool& pool) {
  return cache::ContentSource::of(pool.fd(), pool.offset(), pool.size(), mayBeWritten(pool));
}

bool ModelContents::Pool::tellsChanges() const {
  return source && source->tellsChanges();
}

ModelContents::ModelContents(const graph::Model& model, cache::SegmentStore& store,
                             unsigned threads)
    : store_(store), threads_(threads) {
  for (const memory::PoolRef& pool : model.pools) {
    Pool entry{.memory = pool.get()};
    if (pool->fd() >= 0) entry.source = sourceOf(*pool);
    pools_.push_back(entry);
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

Result<base::Sha256Digest> ModelContents::read(const Pool& pool,
                                               std::vector<base::Sha256Digest>* blocks) {
  if (!pool.source) return cache::hashContent({pool.memory->data(), pool.memory->size()});
  const uint64_t before = store_.counters().bytesHashed;
  auto digest = store_.contentHash(*pool.source, threads_, blocks);
  const std::lock_guard lock(mutex_);
  hashedBytes_ += store_.counters().bytesHashed - before;
  return digest;
}

Status ModelContents::readInto(Pool& pool) {
  std::vector<base::Sha256Digest> blocks;
  HEARTH_ASSIGN(const base::Sha256Digest digest, read(pool, &blocks));
  const std::lock_guard lock(mutex_);
  pool.digest = digest;
  pool.blocks = std::move(blocks);
  return {};
}

Status ModelContents::hash() {
  if (std::ranges::all_of(pools_, [](const Pool& pool) { return pool.digest.has_value(); }))
    return {};
  const base::TraceSpan span("start", "hash the model");
  for (Pool& pool : pools_) {
    if (!pool.digest) HEARTH_TRY(readInto(pool));
  }
  return {};
}

Status ModelContents::prepareToPack() {
  for (Pool& pool : pools_) {
    if (!pool.digest && !pool.tellsChanges()) HEARTH_TRY(readInto(pool));
  }
  return {};
}

Status ModelContents::confirm() {
  HEARTH_TRY(hash());
  for (const Pool& pool : pools_) {
    bool isSame = false;
    if (pool.tellsChanges()) {
      isSame = pool.source->isUnchanged();
    } else {
      Pool now = pool;
      if (now.source) now.source = sourceOf(*now.memory);
      HEARTH_ASSIGN(const base::Sha256Digest digest, read(now));
      isSame = digest == pool.digest;
    }
    if (!isSame)
      return fail(ErrorCode::kBadState,
                  "The model was changed after its weights began to be packed.");
  }
  return {};
}

std::vector<std::vector<base::Sha256Digest>> ModelContents::blocks() const {
  std::vector<std::vector<base::Sha256Digest>> blocks;
  for (const Pool& pool : pools_) blocks.push_back(pool.blocks);
  return blocks;
}

base::Sha256Digest ModelContents::digest() const {
  base::Sha256 hash;
  for (const Pool& pool : pools_) hash.update(*pool.digest);
  return hash.finish();
}

}  // namespace hearth::cpu
