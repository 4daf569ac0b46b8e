// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/model_digests.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "base/mutex.h"
#include "cache/identity/content_hash.h"
#include "cache/identity/pool_source.h"
#include "graph/model_digest.h"

namespace hearth::drivers::delegate {
namespace {

// Remembers in this process only.
class ProcessMemory final : public cache::ContentMemory {
 public:
  std::optional<base::Sha256Digest> content(const cache::FileIdentity& file, uint64_t offset,
                                            uint64_t size) override {
    const std::lock_guard lock(mutex_);
    const auto found = digests_.find(cache::contentKey(file, offset, size));
    return found == digests_.end() ? std::nullopt : std::optional(found->second);
  }
  void rememberContent(const cache::FileIdentity& file, uint64_t offset, uint64_t size,
                       const base::Sha256Digest& digest, int64_t readAt) override {
    if (!cache::isReadWellAfterChange(file, readAt)) return;
    const std::lock_guard lock(mutex_);
    if (digests_.size() >= kMost) digests_.clear();
    digests_.insert_or_assign(cache::contentKey(file, offset, size), digest);
  }

 private:
  static constexpr size_t kMost = 256;

  base::Mutex mutex_;
  std::map<base::Sha256Digest, base::Sha256Digest> digests_;
};

}  // namespace

ModelDigests::ModelDigests(std::shared_ptr<cache::ContentMemory> memory)
    : memory_(memory != nullptr ? std::move(memory) : std::make_shared<ProcessMemory>()) {}

Result<base::Sha256Digest> ModelDigests::of(const graph::Model& model) const {
  base::Sha256 hash;
  hash.update(graph::structureDigest(model));
  std::atomic<uint64_t> hashed = 0;
  for (const memory::PoolRef& pool : model.pools) {
    base::Sha256Digest digest = {};
    if (pool->fd() >= 0) {
      HEARTH_ASSIGN(digest,
                    cache::rememberedHash(cache::sourceOf(*pool), 0, memory_.get(), hashed));
    } else {
      digest = cache::hashContent({pool->data(), pool->size()});
    }
    hash.update(digest);
  }
  return hash.finish();
}

}  // namespace hearth::drivers::delegate
