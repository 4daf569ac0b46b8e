// SPDX-License-Identifier: Apache-2.0
// Parses any bytes as model cache and as data cache, as if the mapping manager knew them.
#include <cstdint>
#include <cstdlib>

#include "drivers/cpu/compilation_cache/cached_model.h"
#include "drivers/cpu/plan/kernel_choice.h"
#include "graph/model_bytes.h"

namespace {

void tryChoices(std::span<const uint8_t> bytes) {
  constexpr size_t kNodes = 3;
  const auto measured = hearth::cpu::MeasuredChoices::parse(bytes, kNodes);
  if (!measured) return;
  if (measured->choices.size() != kNodes) std::abort();
  if (hearth::cpu::MeasuredChoices::parse(measured->encoded(), kNodes) != measured) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth;
  const std::span bytes(data, size);
  tryChoices(bytes);
  if (const auto cached = cpu::CachedData::parse(bytes)) {
    for (const cpu::CachedData::Segment& segment : cached->segments)
      if (segment.isInline && (segment.offset > size || segment.size > size - segment.offset))
        std::abort();
  }
  for (const size_t segments : {0, 2}) {
    const auto plan = cpu::CachedPlan::parse(bytes, segments);
    if (!plan) continue;
    for (const uint32_t index : plan->poolSegments)
      if (index >= segments) std::abort();
    if (plan->scalesSegment.value_or(0) > 1) std::abort();
    (void)cpu::PackingMap::parse(plan->places, segments);
    tryChoices(plan->choices);
    static const uint8_t memory[4096] = {};
    static const std::vector<float> scales(20, 0.5f);
    for (const size_t count : {size_t{0}, scales.size()}) {
      const auto model =
          graph::decodeModel(plan->model, {memory::Pool::borrowed(memory, sizeof memory)},
                             std::span(scales).first(count));
      if (model && !graph::validate(*model)) std::abort();
    }
  }
  return 0;
}
