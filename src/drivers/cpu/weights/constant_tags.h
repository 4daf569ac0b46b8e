// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/mutex.h"
#include "cache/identity/content_tags.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/weights/packing_source.h"
#include "graph/model.h"

namespace hearth::cpu {

// Tags of constants that lie in files (cache::ContentTags), under the key of a store. They are read
// when somebody first asks for them. Thread-safe.
class ConstantTags {
 public:
  // `threads` is how many threads may read one constant.
  ConstantTags(std::shared_ptr<const graph::Model> model,
               std::shared_ptr<cache::SegmentStore> store, unsigned threads);

  // None where the bytes cannot be read, or where the store makes no tags.
  std::optional<cache::ContentTags> of(const PackingSource::Range& range);
  // How many bytes were read so far.
  uint64_t readBytes() const;

 private:
  const std::shared_ptr<const graph::Model> model_;
  const std::shared_ptr<cache::SegmentStore> store_;
  const unsigned threads_;
  mutable base::Mutex mutex_;
  // By pool, offset and length.
  std::map<std::tuple<uint32_t, uint64_t, uint64_t>, std::optional<cache::ContentTags>> known_;
  uint64_t readBytes_ = 0;
};

}  // namespace hearth::cpu
