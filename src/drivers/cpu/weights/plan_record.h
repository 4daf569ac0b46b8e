// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "drivers/cpu/platform/build_identity.h"

namespace hearth::cpu {

// What a plan was made from, apart from the model's structure. Value type.
struct PlanOrigin {
  BuildIdentity build;
  base::Sha256Digest options{};  // preparation options that change the plan
  base::Sha256Digest pools{};    // contents of the model's pools
};

// The latest origins of plans of one model structure, newest first. The segment store keeps the
// record under a key of the structure alone. It tells a start two things: whether to hash the model
// before packing (a model that was never packed has no plan to look for), and why there is no plan.
class PlanRecord {
 public:
  // Malformed bytes give an empty record: a record is only a hint.
  static PlanRecord parse(std::span<const uint8_t> bytes);
  std::vector<uint8_t> encoded() const;

  bool empty() const { return origins_.empty(); }
  // Puts the origin in front. False when it was there already.
  bool add(PlanOrigin origin);

  // What differs between the most similar origin and `wanted`, for people: "model changed", "CPU
  // lost avx512vnni", "packed for x86-64, not for arm64". Empty when the record has the very
  // origin, or no origins.
  std::string difference(const PlanOrigin& wanted) const;

 private:
  static constexpr size_t kMost = 8;
  std::vector<PlanOrigin> origins_;
};

}  // namespace hearth::cpu
