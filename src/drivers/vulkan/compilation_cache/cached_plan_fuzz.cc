// SPDX-License-Identifier: Apache-2.0
// Parses any bytes as a plan or as several, as if the mapping manager knew them: what is accepted
// lies inside the memory that it names, and is written as it was read.
#include <cstdint>
#include <cstdlib>

#include "drivers/vulkan/compilation_cache/cached_family.h"
#include "drivers/vulkan/compilation_cache/cached_plan.h"

namespace {

using namespace hearth::vulkan;

constexpr uint64_t kDataBytes = 64;

void checkPlaces(const Plan& plan) {
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
}

void checkFamily(std::span<const uint8_t> bytes, const GpuFacts& facts) {
  const auto parsed = parseFamily(bytes, kDataBytes, facts);
  if (!parsed) return;
  if (parsed->constantBytes > kDataBytes || parsed->members.size() > kKeptShapes) std::abort();
  for (const CachedMember& member : parsed->members) {
    checkPlaces(member.plan);
    uint64_t sum = 0;
    for (const CachedPiece& piece : member.constants) {
      if (piece.offset > kDataBytes || piece.bytes > kDataBytes - piece.offset) std::abort();
      sum += piece.bytes;
    }
    if (sum != member.plan.constantBytes) std::abort();
  }
  const std::vector<uint8_t> written = encodeFamily(*parsed);
  const auto again = parseFamily(written, kDataBytes, facts);
  if (!again || encodeFamily(*again) != written) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  GpuFacts facts;
  facts.maxBufferRange = 1 << 20;
  facts.rangeAlignment = 16;
  for (uint32_t& most : facts.maxGroups) most = 1000;
  checkFamily({data, size}, facts);
  const auto parsed = parsePlan({data, size}, facts);
  if (!parsed) return 0;
  checkPlaces(parsed->plan);
  const std::vector<uint8_t> written = encodePlan(parsed->plan, parsed->pipelines, parsed->isTuned);
  const auto again = parsePlan(written, facts);
  if (!again || encodePlan(again->plan, again->pipelines, again->isTuned) != written) std::abort();
  return 0;
}
