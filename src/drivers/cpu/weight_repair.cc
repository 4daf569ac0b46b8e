// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weight_repair.h"

#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/caught.h"
#include "base/log.h"
#include "base/trace.h"
#include "drivers/cpu/plan/kernel_factory.h"
#include "drivers/cpu/plan/kernel_stages.h"
#include "hal/request_check.h"
#include "memory/sigbus_guard.h"

namespace hearth::cpu {

void WeightRepair::noteWrong(const cache::SegmentKey& key) noexcept {
  if (const Status noted = base::caught([&] { wrong_.insert(key); }); !noted) areAllWrong_ = true;
  hasWrong_ = true;
}

void WeightRepair::noteKnownWrong() {
  for (const auto& [place, packed] : weights_->places())
    if (const cache::SegmentRef used = packed.segment->published(); used && used->isCorrupt())
      noteWrong(used->key());
}

Result<WeightRepair::Segments> WeightRepair::replaceWrong(const std::set<uint32_t>& referenceOnly) {
  HEARTH_ASSIGN(Segments replaced, packAgain(referenceOnly, [&](const PackedSegment& segment) {
                  const cache::SegmentRef published = segment.published();
                  return published != nullptr &&
                         (areAllWrong_ || wrong_.contains(published->key()));
                }));
  wrong_.clear();
  areAllWrong_ = false;
  hasWrong_ = false;
  return replaced;
}

Result<WeightRepair::Segments> WeightRepair::replaceLost(const std::set<uint32_t>& referenceOnly) {
  return packAgain(referenceOnly, [](const PackedSegment&) { return false; });
}

Status WeightRepair::packInto(PackedWeights* fresh, const std::set<uint32_t>& referenceOnly) const {
  PlanBuilder builder(*model_, fresh, referenceOnly, customs_);
  HEARTH_TRY(builder.build());
  const auto constants = builder.constants().takeCopies();
  Plan plan = builder.takePlan();
  HEARTH_TRY(planArena(&plan, 0));
  HEARTH_TRY(KernelFactory(plan, pool_.get()).makeAll());
  // The running model may also have packings of the second kernels. If building those fails here,
  // it usually has none; packAgain() finds any that is missing.
  if (Status made = KernelFactory(plan, pool_.get(), otherKernels(plan)).makeAll(); !made)
    base::logInfo("Not all other kernels can be packed again. {}", made.error().toString());
  return {};
}

Result<WeightRepair::Segments> WeightRepair::packAgain(
    const std::set<uint32_t>& referenceOnly,
    const std::function<bool(const PackedSegment&)>& isWrong) {
  const base::TraceSpan span("start", "repair packed weights");
  // The wrong places are packed as in a cold start, into separate memory.
  std::optional<PackedWeights> fresh;
  std::map<std::shared_ptr<PackedSegment>, std::vector<WeightPlace>> wrong;
  while (true) {
    const uint64_t losses = memory::lossCount();
    fresh.emplace(true);
    wrong.clear();
    for (const auto& [place, packed] : weights_->places()) {
      if (isWrong(*packed.segment) || packed.segment->hasLosses())
        wrong[packed.segment].push_back(place);
      else if (place.operation != WeightPlace::kConstants)  // from which others are packed
        fresh->preset(place, packed);
    }
    if (wrong.empty()) return Segments();
    const Status packed = packInto(&*fresh, referenceOnly);
    // Presets may have been lost just now.
    if (memory::lossCount() != losses) continue;
    HEARTH_TRY(packed);
    HEARTH_TRY(hal::checkPoolsWhole(*model_));
    break;
  }
  const std::map<WeightPlace, PackedPlace> right = fresh->places();
  const std::map<WeightPlace, PackedPlace> used = weights_->places();
  for (const auto& [segment, places] : wrong) {
    for (const WeightPlace& place : places)
      if (!right.contains(place) || right.at(place).size != used.at(place).size)
        return fail(ErrorCode::kOpFailed, "Operation {} is packed otherwise than before.",
                    place.operation);
    HEARTH_TRY(segment->repair([&](uint8_t* bytes) -> Status {
      for (const WeightPlace& place : places)
        std::memcpy(bytes + used.at(place).offset, right.at(place).data(), right.at(place).size);
      return {};
    }));
  }
  Segments segments;
  for (const auto& [segment, places] : wrong) segments.push_back(segment);
  return segments;
}

}  // namespace hearth::cpu
