// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "cache/folder/store_folders.h"
#include "cache/plan/loaded_plan.h"

namespace hearth::cache {

// Finds and writes plan objects in the folders of a store. Thread-safe.
class PlanTable {
 public:
  explicit PlanTable(StoreFolders& folders) : folders_(folders) {}

  // Checks every byte. Errors: kAbsent, kCorrupt (the object is then removed where that is
  // allowed), kForeign, kIoError.
  StoreResult<PlanRef> find(const PlanKey& key);

  // Replaces the plan of this key, if any. Errors as WeightStore::publish.
  StoreResult<PlanRef> write(PlanContent content);

 private:
  StoreResult<PlanRef> load(const StoreFolder& folder, const PlanKey& key);
  StoreResult<PlanRef> writeIn(const StoreFolder& folder, std::span<const uint8_t> file,
                               const PlanContent& content);

  StoreFolders& folders_;
};

}  // namespace hearth::cache
