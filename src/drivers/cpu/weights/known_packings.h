// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/sha256.h"
#include "cache/object/store_key.h"

namespace hearth::cpu {

// Where the packings of a model's latest version are, by what was packed
// (PackingSource::content()). A store keeps them as a fact of the model's structure; a new version
// of the model finds there what it need not pack again. Value type.
class KnownPackings {
 public:
  struct Entry {
    cache::SegmentKey segment;
    uint64_t offset = 0;  // in the segment
    uint64_t size = 0;
    uint32_t seed = 0;  // XNNPACK's name of the packing function, 0 for ours
  };

  // Malformed bytes give none: the entries are only hints.
  static KnownPackings parse(std::span<const uint8_t> bytes);
  // As many entries as facts have room for, the largest first.
  std::vector<uint8_t> encoded() const;

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  void add(const base::Sha256Digest& content, const Entry& entry) { entries_[content] = entry; }
  // Null when there is none.
  const Entry* find(const base::Sha256Digest& content) const;

 private:
  std::map<base::Sha256Digest, Entry> entries_;
};

}  // namespace hearth::cpu
