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

// Where packings are in a store, by what was packed (PackingSource::content()). A store has one
// list for all models with constants of the same sizes: versions of a model, signatures of it, and
// what differs from it in the shapes of its activations. Each finds there what another has packed.
// Value type.
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
  std::vector<uint8_t> encoded() const;

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  void add(const base::Sha256Digest& content, const Entry& entry) { entries_[content] = entry; }
  // Adds entries of an older list for what this one has none of, as long as there are fewer than
  // kMost.
  void addOlder(const KnownPackings& older);
  static constexpr size_t kMost = 4096;
  // Null when there is none.
  const Entry* find(const base::Sha256Digest& content) const;

 private:
  std::map<base::Sha256Digest, Entry> entries_;
};

}  // namespace hearth::cpu
