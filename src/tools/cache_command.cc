// SPDX-License-Identifier: Apache-2.0
// `hearth cache`.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/wall_clock.h"
#include "cache/bundle/bundle_file.h"
#include "cache/folder/weight_store.h"
#include "cache/object/object_file.h"
#include "cache/table/table_store.h"
#include "tools/cache_report.h"
#include "tools/commands.h"
#include "tools/packing_target.h"
#include "tools/text_table.h"

namespace hearth::tools {
namespace {

using Json = nlohmann::ordered_json;

void print(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

Failure failure(const cache::StoreFailure& why) {
  return {kExitFailure,
          base::formatText("{} ({})", why.message, cache::storeReasonName(why.reason))};
}

// Options for the user's own store alone; writable unless HEARTH_STORE_MODE is read-only.
Outcome<cache::StoreOptions> storeOptions(const CacheOptions& options) {
  auto found = cache::StoreOptions::fromEnvironment();
  if (!found) {
    if (found.error().reason == cache::StoreReason::kBadRequest)
      return usage("{}", found.error().message);
    if (options.store.empty()) return std::unexpected(failure(found.error()));
    found = cache::StoreOptions{};
  }
  found->systemStores.clear();
  if (!options.store.empty()) found->path = options.store;
  if (found->path.empty())
    return std::unexpected(Failure(
        kExitFailure, "HEARTH_STORE, XDG_CACHE_HOME and HOME name no folder for the store."));
  if (found->mode != cache::StoreMode::kReadOnly) found->mode = cache::StoreMode::kReadWrite;
  return std::move(*found);
}

// Opens the store; null, without failure, when there is none yet. Does not create it.
Outcome<std::shared_ptr<cache::WeightStore>> openStore(cache::StoreOptions options, bool write) {
  const cache::StoreMode mode = options.mode;
  options.mode = cache::StoreMode::kReadOnly;
  auto store = cache::WeightStore::open(options);
  if (!store) {
    if (store.error().reason == cache::StoreReason::kGone) return nullptr;
    return std::unexpected(failure(store.error()));
  }
  if (!write || mode == cache::StoreMode::kReadOnly) return std::move(*store);
  options.mode = mode;
  store = cache::WeightStore::open(options);
  if (!store) return std::unexpected(failure(store.error()));
  return std::move(*store);
}

// The store that the options name; null where there is none.
struct NamedStore {
  cache::StoreOptions where;
  std::shared_ptr<cache::WeightStore> store;
};

Outcome<NamedStore> namedStore(const CacheOptions& options, bool write) {
  auto where = storeOptions(options);
  if (!where) return std::unexpected(std::move(where.error()));
  auto store = openStore(*where, write);
  if (!store) return std::unexpected(std::move(store.error()));
  return NamedStore{std::move(*where), std::move(*store)};
}

Outcome<cache::StoreInventory> inventoryOf(const std::shared_ptr<cache::WeightStore>& store) {
  if (store == nullptr) return cache::StoreInventory{};
  auto inventory = store->inventory();
  if (!inventory) return std::unexpected(failure(inventory.error()));
  return std::move(*inventory);
}

// Shows the bytes done and in all on standard error if that is a terminal.
class Progress {
 public:
  ~Progress() {
    if (isShown_) std::cerr << "\r\033[K" << std::flush;
  }
  void show(uint64_t done, uint64_t all) {
    const auto time = std::chrono::steady_clock::now();
    if (!isTerminal_ || time < next_) return;
    next_ = time + std::chrono::milliseconds(100);
    isShown_ = true;
    const double fraction =
        all == 0 ? 1 : std::min(1.0, static_cast<double>(done) / static_cast<double>(all));
    std::cerr << base::formatText("\r\033[Kchecking {} of {}  {}", bytesText(std::min(done, all)),
                                  bytesText(all), bar(fraction, 30))
              << std::flush;
  }

 private:
  const bool isTerminal_ = ::isatty(STDERR_FILENO) == 1;
  bool isShown_ = false;
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

struct OpenBundle {
  cache::ObjectFile file;
  cache::BundleInfo info;
};

Outcome<OpenBundle> openBundle(const std::string& path) {
  auto file = cache::openObject(AT_FDCWD, path);
  if (!file) return std::unexpected(failure(file.error()));
  auto info = cache::readBundleInfo(file->descriptor.get(), file->generation.size);
  if (!info) return std::unexpected(failure(info.error()));
  return OpenBundle{std::move(*file), std::move(*info)};
}

// Those of tokenizers and delegates; none where there is no store yet.
std::vector<cache::TableStore::Entry> tablesIn(const std::string& path) {
  const auto store = cache::TableStore::open({.path = path, .mode = cache::StoreMode::kReadOnly});
  return store ? (*store)->entries() : std::vector<cache::TableStore::Entry>();
}

Outcome<void> list(const CacheOptions& options) {
  std::vector<ListedPlan> plans;
  std::vector<cache::TableStore::Entry> tables;
  cache::StoreInventory::Facts facts;
  std::string path = options.bundle;
  if (!path.empty()) {
    auto bundle = openBundle(path);
    if (!bundle) return std::unexpected(std::move(bundle.error()));
    plans.push_back(listedPlan(bundle->info));
    facts = cache::StoreInventory::Facts::of(bundle->info.content.facts);
  } else {
    const auto named = namedStore(options, false);
    if (!named) return std::unexpected(named.error());
    path = named->where.path;
    const auto inventory = inventoryOf(named->store);
    if (!inventory) return std::unexpected(inventory.error());
    plans = listedPlans(*inventory);
    facts = inventory->facts;
    tables = tablesIn(path);
  }
  const int64_t now = base::wallClock();
  if (options.isJson)
    print({{"path", path},
           {"plans", plansJson(plans)},
           {"tables", tablesJson(tables)},
           {"facts", factsJson(facts)}});
  else
    std::cout << plansText(plans, options.isAll, now) << tablesText(tables, now)
              << (options.isAll ? factsText(facts, now) : "");
  return {};
}

Outcome<void> stat(const CacheOptions& options) {
  const auto named = namedStore(options, false);
  if (!named) return std::unexpected(named.error());
  const auto& [where, store] = *named;
  const auto inventory = inventoryOf(store);
  if (!inventory) return std::unexpected(inventory.error());
  const StoreSums sums = storeSums(*inventory);
  const uint64_t limit = store == nullptr ? where.maxBytes : store->maxBytes();
  const std::vector<cache::TableStore::Entry> tables = tablesIn(where.path);
  uint64_t tableBytes = 0;
  for (const cache::TableStore::Entry& entry : tables) tableBytes += entry.bytes;
  if (options.isJson) {
    print({{"path", where.path},
           {"exists", store != nullptr},
           {"limit_bytes", limit == 0 ? Json(nullptr) : Json(limit)},
           {"bytes", sums.bytes},
           {"plans", sums.plans},
           {"plans_in_use", sums.inUse},
           {"plans_corrupt", sums.corrupt},
           {"segments", sums.segments},
           {"segment_bytes", sums.segmentBytes},
           {"shared_bytes", sums.sharedBytes},
           {"orphans", sums.orphans},
           {"orphan_bytes", sums.orphanBytes},
           {"temporaries", sums.temporaries},
           {"temporary_bytes", sums.temporaryBytes},
           {"tables", tables.size()},
           {"table_bytes", tableBytes},
           {"facts", sums.facts},
           {"fact_bytes", sums.factBytes},
           {"facts_corrupt", sums.factsCorrupt}});
    return {};
  }
  TextTable table({"weight store", printable(where.path)}, "lr");
  if (store == nullptr) table.add({"is not there yet", ""});
  table.add({"on disk", bytesText(sums.bytes)});
  if (limit != 0) table.add({"limit", bytesText(limit)});
  table.add({"plans", std::to_string(sums.plans)});
  table.add({"  in use", std::to_string(sums.inUse)});
  if (sums.corrupt != 0) table.add({"  corrupt", std::to_string(sums.corrupt)});
  table.add({"segments", std::to_string(sums.segments)});
  table.add(
      {"  of no plan", base::formatText("{} ({})", sums.orphans, bytesText(sums.orphanBytes))});
  table.add({"saved by sharing", bytesText(sums.sharedBytes)});
  table.add({"being written",
             base::formatText("{} ({})", sums.temporaries, bytesText(sums.temporaryBytes))});
  table.add({"tables of tokenizers and delegates",
             base::formatText("{} ({})", tables.size(), bytesText(tableBytes))});
  table.add({"facts of drivers", sums.factsCorrupt ? "corrupt"
                                                   : base::formatText("{} ({})", sums.facts,
                                                                      bytesText(sums.factBytes))});
  std::cout << table.toString();
  return {};
}

Outcome<void> verifyBundle(const CacheOptions& options) {
  const auto bundle = openBundle(options.bundle);
  if (!bundle) return std::unexpected(bundle.error());
  Progress progress;
  uint64_t all = 0;
  uint64_t done = 0;
  for (const cache::SegmentInfo& info : bundle->info.content.segments) all += info.payloadSize;
  for (const cache::SegmentInfo& info : bundle->info.content.segments) {
    progress.show(done, all);
    if (const auto status = cache::checkSegmentBlocks(bundle->file.descriptor.get(), info); !status)
      return std::unexpected(failure(status.error()));
    done += info.payloadSize;
  }
  if (options.isJson)
    print({{"path", options.bundle},
           {"plans", 1},
           {"segments", bundle->info.content.segments.size()},
           {"bytes", done}});
  else
    std::cout << base::formatText("{} segments with {} are right.\n",
                                  bundle->info.content.segments.size(), bytesText(done));
  return {};
}

Outcome<void> verify(const CacheOptions& options) {
  if (!options.bundle.empty()) return verifyBundle(options);
  const auto named = namedStore(options, true);
  if (!named) return std::unexpected(named.error());
  const auto& [where, store] = *named;
  cache::WeightStore::VerifyReport report{.isComplete = true};
  if (store != nullptr) {
    Progress progress;
    const auto verified = store->verifyAll([&](uint64_t done, uint64_t all) {
      progress.show(done, all);
      return true;
    });
    if (!verified) return std::unexpected(failure(verified.error()));
    report = *verified;
  }
  if (report.wrongPlans + report.wrongSegments != 0 || report.wrongFacts)
    return std::unexpected(Failure(
        kExitFailure,
        base::formatText(
            "{} of {} plans and {} of {} segments{} in {} are wrong{}.", report.wrongPlans,
            report.plans, report.wrongSegments, report.segments,
            report.wrongFacts ? " and the facts of drivers" : "", where.path,
            store->writability().reason == cache::StoreReason::kNone ? " and are removed" : "")));
  if (options.isJson)
    print({{"path", where.path},
           {"plans", report.plans},
           {"segments", report.segments},
           {"bytes", report.bytes},
           {"facts", report.facts}});
  else
    std::cout << base::formatText("{} plans and {} segments with {} are right, and {} facts.\n",
                                  report.plans, report.segments, bytesText(report.bytes),
                                  report.facts);
  return {};
}

Outcome<void> prune(const CacheOptions& options) {
  const auto named = namedStore(options, true);
  if (!named) return std::unexpected(named.error());
  const auto& [where, store] = *named;
  cache::PruneReport report;
  if (store != nullptr) {
    cache::PruneOptions what{.maxBytes = options.maxBytes.value_or(store->maxBytes())};
    if (options.olderThan) what.olderThan = *options.olderThan;
    const auto pruned = store->prune(what);
    if (!pruned) return std::unexpected(failure(pruned.error()));
    report = *pruned;
  }
  if (options.isJson)
    print({{"path", where.path},
           {"plans", report.plans},
           {"segments", report.segments},
           {"temporaries", report.temporaries},
           {"bytes_freed", report.bytesFreed},
           {"bytes", report.bytesLeft}});
  else
    std::cout << base::formatText(
        "{} plans, {} segments and {} leftovers removed: {} freed, {} "
        "left.\n",
        report.plans, report.segments, report.temporaries, bytesText(report.bytesFreed),
        bytesText(report.bytesLeft));
  return {};
}

// The plans that match one argument of `rm`.
Outcome<std::vector<cache::PlanKey>> plansOf(const cache::StoreInventory& inventory,
                                             const std::string& argument) {
  constexpr size_t kLeastDigits = 4;
  std::vector<cache::PlanKey> byModel;
  std::vector<cache::PlanKey> byKey;
  for (const cache::StoreInventory::Plan& plan : inventory.plans) {
    if (plan.description.model == argument) byModel.push_back(plan.key);
    if (argument.size() >= kLeastDigits && plan.key.hex().starts_with(argument))
      byKey.push_back(plan.key);
  }
  if (!byModel.empty()) return byModel;
  if (byKey.size() == 1) return byKey;
  if (byKey.empty())
    return usage("No plan is of the model {} or has a key that begins so.", argument);
  return usage("{} plans have keys that begin with {}.", byKey.size(), argument);
}

Outcome<void> remove(const CacheOptions& options) {
  if (options.isAll != options.plans.empty())
    return usage("cache rm takes plans, or --all and none.");
  const auto where = storeOptions(options);
  if (!where) return std::unexpected(where.error());
  const auto store = openStore(*where, true);
  if (!store) return std::unexpected(store.error());
  const auto before = inventoryOf(*store);
  if (!before) return std::unexpected(before.error());
  std::vector<cache::PlanKey> keys;
  for (const std::string& argument : options.plans) {
    const auto found = plansOf(*before, argument);
    if (!found) return std::unexpected(found.error());
    keys.insert(keys.end(), found->begin(), found->end());
  }
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  uint64_t removed = options.isAll ? before->plans.size() : keys.size();
  if (*store != nullptr && options.isAll) {
    if (const auto status = (*store)->removeAll(); !status)
      return std::unexpected(failure(status.error()));
  }
  for (const cache::PlanKey& key : keys) {
    const auto status = (*store)->remove(key);
    if (status) continue;
    // Another process may have removed it first.
    if (status.error().reason != cache::StoreReason::kAbsent)
      return std::unexpected(failure(status.error()));
    --removed;
  }
  const auto after = inventoryOf(*store);
  if (!after) return std::unexpected(after.error());
  const uint64_t freed = before->bytesOnDisk - std::min(before->bytesOnDisk, after->bytesOnDisk);
  if (options.isJson)
    print({{"path", where->path},
           {"plans", removed},
           {"bytes_freed", freed},
           {"bytes", after->bytesOnDisk}});
  else
    std::cout << base::formatText("{} plans removed: {} freed, {} left.\n", removed,
                                  bytesText(freed), bytesText(after->bytesOnDisk));
  return {};
}

Outcome<void> path(const CacheOptions& options) {
  const auto where = storeOptions(options);
  if (!where) return std::unexpected(where.error());
  if (options.isJson)
    print({{"path", where->path}, {"exists", ::access(where->path.c_str(), F_OK) == 0}});
  else
    std::cout << where->path << "\n";
  return {};
}

}  // namespace

Outcome<void> cacheCommand(const CacheOptions& options) {
  if (!options.cacheDir.empty()) return cacheFolderCommand(options);
  switch (options.action) {
    case CacheAction::kList:
      return list(options);
    case CacheAction::kStat:
      return stat(options);
    case CacheAction::kExplain:
      return cacheModelCommand(options);
    case CacheAction::kWarm:
      return options.targets.empty() ? cacheModelCommand(options) : cacheWarmForTargets(options);
    case CacheAction::kVerify:
      return verify(options);
    case CacheAction::kPrune:
      return prune(options);
    case CacheAction::kRemove:
      return remove(options);
    case CacheAction::kPath:
      return path(options);
  }
  return usage("hearth cache has no such command.");
}

}  // namespace hearth::tools
