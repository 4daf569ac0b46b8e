// SPDX-License-Identifier: Apache-2.0
// The bytes of hearth-cpu's model cache and data cache. They are parsed only when the mapping
// manager knows them; even so the parser checks everything.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "cache/object/store_key.h"
#include "drivers/cpu/weights/packing_map.h"

namespace hearth::cpu {

// The data cache: a list of the model's segments, and those of them that are not in the weight
// store. Value type.
struct CachedData {
  struct Segment {
    bool isInline = false;  // in the data cache itself, else in the weight store
    cache::SegmentKey key;  // not inline: in the weight store
    uint64_t size = 0;
    uint64_t offset = 0;  // inline: from the start of the data cache
  };
  std::vector<Segment> segments;

  // Gives inline segments their offsets, in the order of the list: each is aligned for kernels and
  // has kReadSlack bytes behind it.
  void layOut();
  // The bytes before the first inline segment.
  std::vector<uint8_t> encodedHead() const;
  // Error: kBadData for bytes that are no data cache. Inline segments of the result lie inside
  // `bytes`.
  static Result<CachedData> parse(std::span<const uint8_t> bytes);
};

// The model cache: all that preparing the model takes, except for large bytes. Value type.
struct CachedPlan {
  // A model that is not planned as a whole: `places` are those of its parts, by their digests.
  bool isInterpreted = false;
  cache::PlanKey pin;                     // of the store's plan that lists the segments
  std::set<uint32_t> referenceOnly;       // operations that XNNPACK refuses
  uint64_t holeBytes = 0;                 // size of pool 0: constants that exist only packed
  std::vector<uint32_t> poolSegments;     // the segment that is pool i + 1
  std::optional<uint32_t> scalesSegment;  // holds the channels' scales, if `model` does not
  std::vector<uint8_t> choices;           // MeasuredChoices; empty before they are known
  // Views of the bytes that were parsed or are to be encoded.
  std::span<const uint8_t> places;  // PackingMap; may be empty for an interpreted model
  std::span<const uint8_t> model;   // graph::encodeModel

  std::vector<uint8_t> encoded() const;
  // Error: kBadData for bytes that are no model cache, or that refer to segments beyond
  // `segmentCount`. The bytes outlive the result.
  static Result<CachedPlan> parse(std::span<const uint8_t> bytes, size_t segmentCount);
};

}  // namespace hearth::cpu
