// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/object/store_failure.h"

namespace hearth::cache {

// Tells people what a plan belongs to. Listings show it; nothing is decided by it. Value type.
struct PlanDescription {
  std::string model;    // the model's file name without folders, or another name; may be empty
  std::string device;   // the driver that made the plan
  int64_t created = 0;  // nanoseconds since 1970, 0 = unknown
  std::string details;  // the driver's own words, for example the parts of the plan's key
  bool operator==(const PlanDescription&) const = default;

  // The bytes in a plan file. Texts are cut at kMaxText bytes each. An empty description has no
  // bytes.
  std::vector<uint8_t> encoded() const;
  // The inverse. Any defect is kCorrupt; never reads outside `bytes`.
  static StoreResult<PlanDescription> parse(std::span<const uint8_t> bytes);

  static constexpr size_t kMaxText = size_t{64} << 10;
};

}  // namespace hearth::cache
