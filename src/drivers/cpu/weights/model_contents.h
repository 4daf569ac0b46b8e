// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/sha256.h"
#include "cache/identity/content_memory.h"
#include "cache/store/segment_store.h"
#include "graph/model.h"

namespace hearth::cpu {

// The digests of a model's pools, under which every later process finds what was packed from them.
// Large tables of look-ups do not count (tablesOnlyLookedUp()): they are read in place.
// A digest must be of the very bytes that were packed, although files can be rewritten at any time
// and a client may change its memory once the model is freed. So the pools are inspected before
// the first packing, and confirm() checks afterwards that they did not change meanwhile: by the
// file's identity where that shows every change, and by hashing the bytes before and after where it
// does not.
//
// Made before the first packing. Used by one thread at a time.
class ModelContents {
 public:
  // `threads` is how many threads may hash. The model's pools and the store outlive this.
  ModelContents(const graph::Model& model, cache::SegmentStore& store, unsigned threads);

  // Finds the digests that the store remembers, and hashes small memory pools. True when all
  // digests are known then.
  bool recall();
  // Reads the pools whose digests are not known, and finds the digests of contents that the store
  // has seen, in whatever file. Hashes pools that have no tags. Errors of reading.
  Status look();
  // Call it before packing that is to be kept: reads the pools that could change without a trace.
  // Errors as look().
  Status prepareToPack();
  // Call it after the packing, and again after reading pools in other ways. On success all digests
  // are known, and no pool has changed since before the packing. kBadState: the model changed, and
  // nothing that was packed may be kept.
  Status confirm();

  // Whether the digests of all pools are known.
  bool isKnown() const;
  // The digest of all pools together; zeros unless isKnown().
  base::Sha256Digest digest() const;
  uint64_t hashedBytes() const { return hashedBytes_; }

 private:
  struct Pool {
    const memory::Pool* memory;
    std::optional<cache::ContentSource> source;  // only of pools with a descriptor
    std::optional<base::Sha256Digest> digest;
    std::optional<cache::ContentTags> tags;
    bool tellsChanges() const;
  };
  // Reads the pool as it is now, into `digest` or `tags`.
  Status hash(Pool& pool);
  Status tag(Pool& pool);
  // Whether the pool has the bytes that it had when it was read before the packing. Also gets a
  // digest that is not known.
  Result<bool> isSame(Pool& pool);

  cache::SegmentStore& store_;
  const unsigned threads_;
  mutable base::Mutex
      mutex_;  // held while members change, so that a forked child finds them consistent
  std::vector<Pool> pools_;
  uint64_t hashedBytes_ = 0;
};

}  // namespace hearth::cpu
