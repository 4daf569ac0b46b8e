// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/stored_packing.h"

#include <memory>
#include <optional>

#include "drivers/cpu/weights/packing_map.h"
#include "memory/sigbus_order.h"

namespace hearth::cpu {

uint64_t StoredPacking::bytes() const {
  uint64_t bytes = 0;
  for (const cache::SegmentRef& segment : segments) bytes += segment->size();
  return bytes;
}

Result<StoredPacking> loadStoredPacking(cache::SegmentStore& store, const cache::LoadedPlan& plan,
                                        const base::Sha256Digest& graph) {
  HEARTH_ASSIGN(const PackingMap stored, PackingMap::parse(plan.bytes(), plan.segments().size()));
  StoredPacking result;
  const std::optional<uint32_t> number = stored.graphNumber(graph);
  if (!number) return result;
  result.hasGraph = true;
  result.isWhole = stored.isWhole(*number);
  std::vector<bool> isUsed(plan.segments().size());
  for (const PackingMap::Entry& entry : stored.entries)
    if (entry.graph == *number) isUsed[entry.segment] = true;
  std::vector<std::shared_ptr<PackedSegment>> packed(plan.segments().size());
  const memory::WatchedTogether together;
  for (size_t i = 0; i < packed.size(); ++i) {
    if (!isUsed[i]) continue;
    const cache::FoundSegment found = store.find(plan.segments()[i]);
    if (!found || found.segment->size() != stored.segmentSizes[i]) {
      result.missing = found ? cache::StoreReason::kCorrupt : found.reason;
      continue;
    }
    packed[i] = std::make_shared<PackedSegment>(found.segment);
    result.segments.push_back(found.segment);
  }
  for (const PackingMap::Entry& entry : stored.entries)
    if (entry.graph == *number && packed[entry.segment] != nullptr)
      result.places.emplace_back(
          entry.place, PackedPlace{packed[entry.segment], entry.offset, entry.size, entry.seed});
  return result;
}

}  // namespace hearth::cpu
