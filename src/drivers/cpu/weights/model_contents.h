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

// The pool's file, which has a descriptor, as it is now.
cache::ContentSource sourceOf(const memory::Pool& pool);

// The digests of a model's pools, which name what is packed from them for every later process. A
// digest may do so only if it is of the very bytes that were packed, although files can be
// rewritten at any time, and a client's memory is the client's again when the model is freed. So
// the pools are looked at before anything of them is packed, and confirm() answers afterwards for
// all the time between: where the system tells of changes it is asked whether there were any; where
// it does not, the bytes are hashed before and after.
//
// Made before the first packing. Used by one thread at a time.
class ModelContents {
 public:
  // `threads`: how many may hash. The model's pools outlive this.
  ModelContents(const graph::Model& model, cache::SegmentStore& store, unsigned threads);

  // Whether all digests are known without reading much.
  bool recall();
  // Reads what is not known. Errors of reading.
  Status hash();
  // Before packing that is to be kept: reads what could change without a trace. Errors as hash().
  Status prepareToPack();
  // After it: all digests are known, and were right from before the packing until now. kBadState:
  // the model changed. It stays so; nothing that was packed may be kept.
  Status confirm();

  // Of all pools, once they are known.
  base::Sha256Digest digest() const;
  uint64_t hashedBytes() const { return hashedBytes_; }

 private:
  struct Pool {
    const memory::Pool* memory;
    std::optional<cache::ContentSource> source;  // of those with a descriptor
    std::optional<base::Sha256Digest> digest;
    bool tellsChanges() const;
  };
  Result<base::Sha256Digest> read(const Pool& pool);
  Status readInto(Pool& pool);

  cache::SegmentStore& store_;
  const unsigned threads_;
  base::Mutex mutex_;  // while something is changed, so that a forked child finds it whole
  std::vector<Pool> pools_;
  uint64_t hashedBytes_ = 0;
};

}  // namespace hearth::cpu
