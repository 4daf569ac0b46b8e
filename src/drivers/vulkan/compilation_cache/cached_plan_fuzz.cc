// SPDX-License-Identifier: Apache-2.0
// Parses any bytes as a plan, as if the mapping manager knew them: what is accepted lies inside the
// memory that it names, and is written as it was read.
#include <cstdint>
#include <cstdlib>

#include "drivers/vulkan/compilation_cache/cached_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth::vulkan;
  GpuFacts facts;
  facts.maxBufferRange = 1 << 20;
  facts.rangeAlignment = 16;
  for (uint32_t& most : facts.maxGroups) most = 1000;
  const auto parsed = parsePlan({data, size}, facts);
  if (!parsed) return 0;
  const Plan& plan = parsed->plan;
  for (const PlannedTensor& tensor : plan.tensors) {
    const PlannedTensor& root = plan.rootOf(tensor.root);
    const uint64_t memory =
        root.place == PlannedTensor::Place::kArena ? plan.arenaBytes : plan.constantBytes;
    if (root.offset > memory || root.bytes > memory - root.offset) std::abort();
    if (tensor.bytes != root.bytes) std::abort();
  }
  for (const Dispatch& dispatch : plan.dispatches)
    for (const Binding& binding : dispatch.bindings)
      if (binding.tensor >= plan.tensors.size()) std::abort();
  const std::vector<uint8_t> written = encodePlan(plan, parsed->pipelines);
  const auto again = parsePlan(written, facts);
  if (!again || encodePlan(again->plan, again->pipelines) != written) std::abort();
  return 0;
}
