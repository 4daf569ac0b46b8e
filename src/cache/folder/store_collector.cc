// SPDX-License-Identifier: Apache-2.0
#include "cache/folder/store_collector.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/crash_point.h"
#include "base/wall_clock.h"
#include "cache/folder/store_inventory.h"
#include "cache/object/object_file.h"

namespace hearth::cache {
namespace {

constexpr std::chrono::minutes kStartMayLast{10};

// One run over a store.
class Collection {
 public:
  Collection(const StoreFolder& folder, const BuildFingerprint& current,
             const PruneOptions& options)
      : folder_(folder),
        current_(current),
        options_(options),
        inventory_(StoreInventory::of(folder)),
        now_(base::wallClock()) {
    report_.bytesLeft = inventory_.bytesOnDisk;
  }

  PruneReport run() {
    removeLeftovers();
    for (const StoreInventory::Plan& plan : inventory_.plans)
      if (plan.isCorrupt) removePlan(plan);
    removeOrphans(options_.orphansOlderThan, false);
    std::vector<const StoreInventory::Plan*> plans = plansByWorth();
    for (const StoreInventory::Plan* plan : plans)
      if (!plan->isInUse && isOlder(plan->lastUsed, options_.olderThan)) removePlan(*plan);
    removeOrphans(kStartMayLast, true);
    for (const StoreInventory::Plan* plan : plans) {
      if (report_.bytesLeft <= options_.maxBytes) break;
      if (!plan->isInUse) removePlan(*plan);
    }
    return report_;
  }

 private:
  // A time more than a day in the future comes from a clock that was ahead. It counts as oldest:
  // otherwise the file would stay until that day.
  bool isOlder(int64_t time, std::chrono::seconds age) const {
    if (age == std::chrono::seconds::max()) return false;
    // The difference of two arbitrary times may not fit into a signed number.
    const auto difference = [](int64_t later, int64_t earlier) {
      return std::chrono::duration<double, std::nano>(
          static_cast<double>(static_cast<uint64_t>(later) - static_cast<uint64_t>(earlier)));
    };
    return time > now_ ? difference(time, now_) > std::chrono::days(1)
                       : difference(now_, time) >= std::chrono::duration<double>(age);
  }

  void freed(uint64_t bytes) {
    report_.bytesFreed += bytes;
    report_.bytesLeft -= std::min(report_.bytesLeft, bytes);
  }

  void removeLeftovers() {
    for (const StoreInventory::Other& file : inventory_.temporaries) {
      if (file.isLocked || !isOlder(file.changed, options_.leftoversOlderThan)) continue;
      if (!removeFile(folder_.temporary(), file.name)) {
        // It is a planted folder that was moved here. remove_all follows no symbolic links.
        std::error_code error;
        std::filesystem::remove_all(folder_.path() + "/tmp/" + file.name, error);
        if (error) continue;
      }
      ++report_.temporaries;
      freed(file.bytesOnDisk);
    }
    std::unordered_set<std::string> plans;
    for (const StoreInventory::Plan& plan : inventory_.plans) plans.insert(plan.key.hex());
    for (const StoreInventory::Other& stamp : inventory_.stamps)
      if (!plans.contains(stamp.name) && isOlder(stamp.changed, options_.leftoversOlderThan))
        (void)removeFile(folder_.stamps(), stamp.name);
  }

  // Removes segments that no plan uses, oldest first.
  void removeOrphans(std::chrono::seconds age, bool onlyForSpace) {
    std::vector<std::pair<int64_t, SegmentKey>> orphans;
    for (const auto& [key, segment] : inventory_.segments)
      if (segment.plans == 0 && isOlder(segment.written, age))
        orphans.emplace_back(segment.written, key);
    std::ranges::sort(orphans);
    for (const auto& [written, key] : orphans) {
      if (onlyForSpace && report_.bytesLeft <= options_.maxBytes) break;
      removeSegment(key);
    }
  }

  // Plans of other builds first, then by last use; a use in the future does not count.
  std::vector<const StoreInventory::Plan*> plansByWorth() const {
    std::vector<const StoreInventory::Plan*> plans;
    for (const StoreInventory::Plan& plan : inventory_.plans)
      if (!plan.isCorrupt) plans.push_back(&plan);
    std::ranges::sort(plans, {}, [&](const StoreInventory::Plan* plan) {
      return std::tuple(current_ == BuildFingerprint{} || plan->fingerprint == current_,
                        plan->lastUsed <= now_, plan->lastUsed);
    });
    return plans;
  }

  void removePlan(const StoreInventory::Plan& plan) {
    if (!removed_.insert(plan.key).second) return;
    const std::string name = StoreFolder::planName(plan.key);
    if (!plan.isCorrupt) {
      // A model may have loaded the plan, or published it anew, since the inventory.
      const auto file = openObject(folder_.plans(), name);
      if (file && isLocked(file->descriptor.get())) return;
    }
    if (!removeFile(folder_.plans(), name)) return;
    HEARTH_CRASH_POINT("collector.after_plan");
    (void)removeFile(folder_.stamps(), plan.key.hex());
    ++report_.plans;
    freed(plan.bytesOnDisk);
    for (const SegmentKey& key : plan.segments) {
      const auto segment = inventory_.segments.find(key);
      if (segment == inventory_.segments.end()) continue;
      if (segment->second.plans > 0) --segment->second.plans;
      if (segment->second.plans == 0) removeSegment(key);
    }
  }

  void removeSegment(const SegmentKey& key) {
    const auto segment = inventory_.segments.find(key);
    bool isRemoved = true;
    for (const bool durable : {true, false})
      isRemoved &=
          removeFile(folder_.segments(), StoreFolder::segmentPath(key, durable)).has_value();
    HEARTH_CRASH_POINT("collector.after_segment");
    if (isRemoved) {
      ++report_.segments;
      freed(segment->second.bytesOnDisk);
    }
    inventory_.segments.erase(segment);
  }

  const StoreFolder& folder_;
  const BuildFingerprint& current_;
  const PruneOptions& options_;
  StoreInventory inventory_;
  const int64_t now_;
  std::unordered_set<PlanKey> removed_;
  PruneReport report_;
};

}  // namespace

PruneReport collect(const StoreFolder& folder, const BuildFingerprint& current,
                    const PruneOptions& options) {
  return Collection(folder, current, options).run();
}

}  // namespace hearth::cache
