// SPDX-License-Identifier: Apache-2.0
// What a plan of the store says: which place of the model uses which part of which segment.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "drivers/cpu/weights/packed_weights.h"

namespace hearth::cpu {

// Segments are numbered in the order of the plan object's list of keys. In a weight store each
// signature of a model has a plan of its own; a bundle has one plan for all of them. Value type.
struct PackingMap {
  struct Entry {
    uint32_t graph = 0;
    WeightPlace place;
    uint32_t seed = 0;
    uint32_t segment = 0;
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  std::vector<base::Sha256Digest> graphs;  // digests that tell signatures apart
  // Numbers of the graphs, ascending, that lack places because not all packings could be written.
  std::vector<uint32_t> partly;
  std::vector<uint64_t> segmentSizes;
  std::vector<Entry> entries;

  // The position of a graph in `graphs`; none when the plan is not for it.
  std::optional<uint32_t> graphNumber(const base::Sha256Digest& graph) const;

  // Whether all places of a graph are there.
  bool isWhole(uint32_t graph) const;

  std::vector<uint8_t> encoded() const;
  // The inverse of encoded(). `segmentCount` is that of the plan object. Every entry of the result
  // lies within its segment, aligned for kernels. Error: kBadData for anything malformed; never
  // reads outside `bytes`.
  static Result<PackingMap> parse(std::span<const uint8_t> bytes, size_t segmentCount);
};

}  // namespace hearth::cpu
