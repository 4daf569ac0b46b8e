// SPDX-License-Identifier: Apache-2.0
// Parses any bytes as the driver's part of a plan, and as a record of plans.
#include <cstdint>
#include <cstdlib>

#include "drivers/cpu/weights/packing_map.h"
#include "drivers/cpu/weights/plan_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth::cpu;
  const std::vector<uint8_t> bytes(data, data + size);
  for (const size_t segments : {1, 2}) {
    const auto plan = PackingMap::parse(bytes, segments);
    if (!plan) continue;
    for (const PackingMap::Entry& entry : plan->entries)
      if (entry.graph >= plan->graphs.size() || entry.segment >= segments ||
          entry.size > plan->segmentSizes[entry.segment] ||
          entry.offset > plan->segmentSizes[entry.segment] - entry.size)
        std::abort();
    if (plan->encoded() != bytes) std::abort();
  }
  PlanRecord record = PlanRecord::parse(bytes);
  (void)record.difference({});
  (void)record.add({});
  if (PlanRecord::parse(record.encoded()).empty()) std::abort();
  return 0;
}
