// SPDX-License-Identifier: Apache-2.0
// The bytes of this driver's model cache. They are parsed only when the mapping manager knows them;
// even so the parser checks everything.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_reader.h"
#include "base/result.h"
#include "drivers/vulkan/compilation_cache/byte_writer.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/context/pipelines.h"
#include "drivers/vulkan/plan/plan.h"

namespace hearth::vulkan {

// A plan without its constants, and the pipelines that it runs.
struct CachedPlan {
  Plan plan;
  std::vector<SavedPipeline> pipelines;
  bool isTuned = false;  // whether its products are in parts that were found by measuring
};

// The pipelines of a plan, or of several, among other bytes.
void writePipelines(ByteWriter& writer, std::span<const SavedPipeline> pipelines);
std::vector<SavedPipeline> readPipelines(base::ByteReader& reader);

std::vector<uint8_t> encodePlan(const Plan& plan, std::span<const SavedPipeline> pipelines,
                                bool isTuned = false);

// Error: kBadData for bytes that encodePlan() did not write, or of a plan that exceeds what the GPU
// has. All tensors of the result lie in its memory, and its dispatches name tensors of it.
Result<CachedPlan> parsePlan(std::span<const uint8_t> bytes, const GpuFacts& facts);

}  // namespace hearth::vulkan
