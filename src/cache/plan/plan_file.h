// SPDX-License-Identifier: Apache-2.0
// The format of a plan object: a head of 128 bytes, the keys of the segments that the plan uses,
// its description, the driver's own bytes, and a SHA-256 over all of that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/sha256.h"
#include "cache/object/store_failure.h"
#include "cache/object/store_key.h"
#include "cache/plan/plan_description.h"

namespace hearth::cache {

// More than any plan needs: bounds what is read into memory.
inline constexpr uint64_t kMaxPlanFile = uint64_t{256} << 20;

// Identifies the driver's build, its XNNPACK and how it packs on this CPU. Plans with another
// fingerprint are evicted first. All zeros = unknown.
using BuildFingerprint = base::Sha256Digest;

struct PlanContent {
  PlanKey key;
  BuildFingerprint fingerprint{};
  std::vector<SegmentKey> segments;
  PlanDescription description;
  std::vector<uint8_t> bytes;
};

// Parses a whole plan file. Any defect is kCorrupt; never reads outside `file`.
StoreResult<PlanContent> parsePlanFile(std::span<const uint8_t> file);

// Returns the whole file; kBadRequest when it would exceed kMaxPlanFile.
StoreResult<std::vector<uint8_t>> makePlanFile(const PlanContent& plan);

// Reads and checks an open plan file: kCorrupt also when it has another key.
StoreResult<PlanContent> readPlanFile(int fd, uint64_t fileSize, const PlanKey& key);

}  // namespace hearth::cache
