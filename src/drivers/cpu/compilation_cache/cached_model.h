// SPDX-License-Identifier: Apache-2.0
// The bytes of hearth-cpu's model cache and data cache. They are parsed only once the mapping
// manager vouches for them; even so nothing in them is taken for granted.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "cache/object/store_key.h"
#include "drivers/cpu/weights/stored_plan.h"

namespace hearth::cpu {

// The data cache: where the large bytes are. Value type.
struct CachedData {
  struct Segment {
    bool isInline = false;  // in the data cache itself, else in the weight store
    cache::SegmentKey key;  // in the weight store
    uint64_t size = 0;
    uint64_t offset = 0;  // inline: from the start of the data cache
  };
  std::vector<Segment> segments;

  // Gives inline segments their offsets, in the order of the list, each aligned for kernels and
  // with bytes behind it that they may read.
  void layOut();
  // All that lies before the first inline segment.
  std::vector<uint8_t> encodedHead() const;
  // kBadData for bytes that are no data cache. Inline segments of the result lie inside `bytes`.
  static Result<CachedData> parse(std::span<const uint8_t> bytes);
};

// The model cache: all that it takes to prepare the model, but for the large bytes. Value type.
struct CachedPlan {
  // Interpreted models have no plan; nothing of them is packed.
  bool isInterpreted = false;
  cache::PlanKey pin;                     // of the store's plan that lists the segments
  std::set<uint32_t> referenceOnly;       // operations that XNNPACK refuses
  uint64_t holeBytes = 0;                 // size of pool 0, whose constants are only there packed
  std::vector<uint32_t> poolSegments;     // the segment that pool i + 1 is
  std::optional<uint32_t> scalesSegment;  // where the model's scales of channels are, if not in it
  std::vector<uint8_t> choices;           // MeasuredChoices; empty before they are known
  // Views, of what was parsed or is to be encoded.
  std::span<const uint8_t> places;  // StoredPlan
  std::span<const uint8_t> model;   // graph::encodeModel

  std::vector<uint8_t> encoded() const;
  // kBadData for bytes that are no model cache, or one for another number of segments. The bytes
  // outlive the result.
  static Result<CachedPlan> parse(std::span<const uint8_t> bytes, size_t segmentCount);
};

}  // namespace hearth::cpu
