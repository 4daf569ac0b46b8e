// SPDX-License-Identifier: Apache-2.0
// The output of `hearth cache` about a weight store, for people and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cache/bundle/bundle_file.h"
#include "cache/folder/store_inventory.h"
#include "cache/table/table_store.h"

namespace hearth::tools {

// One plan of a store, as listed.
struct ListedPlan {
  std::string key;  // 64 digits
  cache::PlanDescription description;
  size_t segments = 0;    // distinct ones
  uint64_t bytes = 0;     // on disk: the plan and all its segments
  uint64_t ownBytes = 0;  // of these, bytes that no other plan uses
  int64_t lastUsed = 0;   // nanoseconds since 1970, 0 = unknown
  bool isInUse = false;
  bool isCorrupt = false;
};

// The plans of an inventory, last used first, including those without segments: the driver's notes.
std::vector<ListedPlan> listedPlans(const cache::StoreInventory& inventory);
// The one plan of a bundle.
ListedPlan listedPlan(const cache::BundleInfo& bundle);

// A table; lists plans without segments only with `isAll`. `now` is in nanoseconds since 1970.
std::string plansText(const std::vector<ListedPlan>& plans, bool isAll, int64_t now);
nlohmann::ordered_json plansJson(const std::vector<ListedPlan>& plans);

// A table of the small tables in a store; empty if there are none.
std::string tablesText(const std::vector<cache::TableStore::Entry>& tables, int64_t now);
nlohmann::ordered_json tablesJson(const std::vector<cache::TableStore::Entry>& tables);

// A table of the drivers' facts in a store; empty if there are none.
std::string factsText(const cache::StoreInventory::Facts& facts, int64_t now);
nlohmann::ordered_json factsJson(const cache::StoreInventory::Facts& facts);

// Sums over a store.
struct StoreSums {
  uint64_t plans = 0;    // that have segments
  uint64_t inUse = 0;    // plans that a loaded model uses
  uint64_t corrupt = 0;  // plans
  uint64_t segments = 0;
  uint64_t segmentBytes = 0;
  uint64_t orphans = 0;  // segments of no plan
  uint64_t orphanBytes = 0;
  uint64_t sharedBytes = 0;  // bytes saved because plans share segments
  uint64_t temporaries = 0;
  uint64_t temporaryBytes = 0;
  uint64_t bytes = 0;  // total on disk, without the facts
  uint64_t facts = 0;
  uint64_t factBytes = 0;
  bool factsCorrupt = false;
};
StoreSums storeSums(const cache::StoreInventory& inventory);

}  // namespace hearth::tools
