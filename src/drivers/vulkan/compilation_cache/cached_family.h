// SPDX-License-Identifier: Apache-2.0
// The bytes of this driver's model cache of a model with unknown dimensions. As those of a plan
// (cached_plan.h) they are parsed only when the mapping manager knows them, and checked all the
// same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "drivers/vulkan/compilation_cache/cached_plan.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/context/pipelines.h"
#include "drivers/vulkan/plan/plan.h"
#include "graph/model.h"

namespace hearth::vulkan {

// For how many shapes of its inputs a model has plans, in memory and in cache files.
inline constexpr size_t kKeptShapes = 8;

// Bytes of the data cache.
struct CachedPiece {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// The plan for some shapes of the inputs, without its constants, and where these lie: pieces that
// follow each other on the GPU.
struct CachedMember {
  std::vector<graph::Dimensions> shapes;
  Plan plan;
  std::vector<CachedPiece> constants;
  bool isTuned = false;  // CachedPlan::isTuned
};

struct CachedFamily {
  // graph::encodeModel(), with all constants of pools in the first `constantBytes` of the data
  // cache. Refers to the bytes that were parsed.
  std::span<const uint8_t> model;
  uint64_t constantBytes = 0;
  std::vector<CachedMember> members;     // at most kKeptShapes
  std::vector<SavedPipeline> pipelines;  // of all plans
};

std::vector<uint8_t> encodeFamily(const CachedFamily& family);

// Whether the bytes begin as those of encodeFamily().
bool isFamily(std::span<const uint8_t> bytes);

// Error: kBadData for bytes that encodeFamily() did not write, for what lies outside of a data
// cache of this size, and as parsePlan().
Result<CachedFamily> parseFamily(std::span<const uint8_t> bytes, uint64_t dataBytes,
                                 const GpuFacts& facts);

}  // namespace hearth::vulkan
