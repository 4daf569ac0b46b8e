// SPDX-License-Identifier: Apache-2.0
#include "tools/cache_report.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "tools/duration.h"
#include "tools/text_table.h"

namespace hearth::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownDigits = 12;

// ISO 8601 in UTC, null for an unknown time.
Json timeJson(int64_t nanoseconds) {
  if (nanoseconds == 0) return nullptr;
  const std::time_t seconds = nanoseconds / 1'000'000'000;
  std::tm parts;
  char text[64];
  if (::gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
    return nullptr;
  return text;
}

std::string agoText(int64_t time, int64_t now) {
  return time == 0 ? "" : ageText(std::chrono::nanoseconds(now > time ? now - time : 0));
}

}  // namespace

std::vector<ListedPlan> listedPlans(const cache::StoreInventory& inventory) {
  std::vector<ListedPlan> plans;
  for (const cache::StoreInventory::Plan& plan : inventory.plans) {
    ListedPlan listed{.key = plan.key.hex(),
                      .description = plan.description,
                      .bytes = plan.bytesOnDisk,
                      .ownBytes = plan.bytesOnDisk,
                      .lastUsed = plan.lastUsed,
                      .isInUse = plan.isInUse,
                      .isCorrupt = plan.isCorrupt};
    std::unordered_set<cache::SegmentKey> seen;
    for (const cache::SegmentKey& key : plan.segments) {
      if (!seen.insert(key).second) continue;
      ++listed.segments;
      const auto segment = inventory.segments.find(key);
      if (segment == inventory.segments.end()) continue;
      listed.bytes += segment->second.bytesOnDisk;
      if (segment->second.plans <= static_cast<uint32_t>(std::ranges::count(plan.segments, key)))
        listed.ownBytes += segment->second.bytesOnDisk;
    }
    plans.push_back(std::move(listed));
  }
  std::ranges::stable_sort(plans, std::ranges::greater(), &ListedPlan::lastUsed);
  return plans;
}

ListedPlan listedPlan(const cache::BundleInfo& bundle) {
  ListedPlan listed{.key = bundle.content.plan.key.hex(),
                    .description = bundle.content.plan.description,
                    .segments = bundle.content.segments.size(),
                    .bytes = bundle.head.indexSize()};
  for (const cache::SegmentInfo& segment : bundle.content.segments)
    listed.bytes += segment.payloadSize;
  listed.ownBytes = listed.bytes;
  return listed;
}

std::string plansText(const std::vector<ListedPlan>& plans, bool isAll, int64_t now) {
  TextTable table({"plan", "model", "device", "segments", "size", "own", "made", "used", ""},
                  "lllrrrrrl");
  for (const ListedPlan& plan : plans) {
    if (plan.segments == 0 && !plan.isCorrupt && !isAll) continue;
    table.add({plan.key.substr(0, kShownDigits), printable(plan.description.model),
               printable(plan.description.device), std::to_string(plan.segments),
               bytesText(plan.bytes), bytesText(plan.ownBytes),
               agoText(plan.description.created, now), agoText(plan.lastUsed, now),
               plan.isCorrupt ? "corrupt"
               : plan.isInUse ? "in use"
                              : ""});
  }
  return table.empty() ? "No plans.\n" : table.toString();
}

Json plansJson(const std::vector<ListedPlan>& plans) {
  Json list = Json::array();
  for (const ListedPlan& plan : plans)
    list.push_back({{"key", plan.key},
                    {"model", plan.description.model},
                    {"device", plan.description.device},
                    {"details", plan.description.details},
                    {"created", timeJson(plan.description.created)},
                    {"last_used", timeJson(plan.lastUsed)},
                    {"segments", plan.segments},
                    {"bytes", plan.bytes},
                    {"own_bytes", plan.ownBytes},
                    {"in_use", plan.isInUse},
                    {"corrupt", plan.isCorrupt}});
  return list;
}

std::string tablesText(const std::vector<cache::TableStore::Entry>& tables, int64_t now) {
  if (tables.empty()) return "";
  TextTable shown({"table", "of a", "size", "used"}, "llrr");
  for (const cache::TableStore::Entry& entry : tables)
    shown.add({entry.key.hex().substr(0, kShownDigits),
               entry.kind ? std::string(tableKindName(*entry.kind)) : "", bytesText(entry.bytes),
               agoText(entry.lastUsed, now)});
  return "\n" + shown.toString();
}

Json tablesJson(const std::vector<cache::TableStore::Entry>& tables) {
  Json list = Json::array();
  for (const cache::TableStore::Entry& entry : tables)
    list.push_back({{"key", entry.key.hex()},
                    {"kind", entry.kind ? Json(tableKindName(*entry.kind)) : Json(nullptr)},
                    {"bytes", entry.bytes},
                    {"last_used", timeJson(entry.lastUsed)}});
  return list;
}

std::string factsText(const cache::StoreInventory::Facts& facts, int64_t now) {
  if (facts.entries.empty()) return "";
  TextTable table({"fact", "size", "used"}, "lrr");
  for (const auto& fact : facts.entries)
    table.add({printable(fact.kind), bytesText(fact.bytes), agoText(fact.lastUsed, now)});
  return "\n" + table.toString();
}

Json factsJson(const cache::StoreInventory::Facts& facts) {
  Json list = Json::array();
  for (const auto& fact : facts.entries)
    list.push_back(
        {{"kind", fact.kind}, {"bytes", fact.bytes}, {"last_used", timeJson(fact.lastUsed)}});
  return list;
}

StoreSums storeSums(const cache::StoreInventory& inventory) {
  StoreSums sums{.segments = inventory.segments.size(),
                 .bytes = inventory.bytesOnDisk,
                 .facts = inventory.facts.entries.size(),
                 .factBytes = inventory.facts.bytesOnDisk,
                 .factsCorrupt = inventory.facts.isCorrupt};
  for (const cache::StoreInventory::Plan& plan : inventory.plans) {
    sums.corrupt += plan.isCorrupt;
    if (plan.segments.empty()) continue;
    ++sums.plans;
    sums.inUse += plan.isInUse;
    std::unordered_set<cache::SegmentKey> seen;
    for (const cache::SegmentKey& key : plan.segments)
      if (const auto segment = inventory.segments.find(key);
          segment != inventory.segments.end() && seen.insert(key).second)
        sums.sharedBytes += segment->second.bytesOnDisk;
  }
  for (const auto& [key, segment] : inventory.segments) {
    sums.segmentBytes += segment.bytesOnDisk;
    if (segment.plans == 0) {
      ++sums.orphans;
      sums.orphanBytes += segment.bytesOnDisk;
    } else {
      sums.sharedBytes -= std::min(sums.sharedBytes, segment.bytesOnDisk);
    }
  }
  for (const cache::StoreInventory::Other& file : inventory.temporaries) {
    ++sums.temporaries;
    sums.temporaryBytes += file.bytesOnDisk;
  }
  return sums;
}

}  // namespace hearth::tools
