// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/descriptor.h"
#include "cache/plan_file.h"
#include "cache/store_folders.h"

namespace hearth::cache {

// A plan in use. While it lives, garbage collection keeps the plan's object and its segments.
// Immutable.
class LoadedPlan {
 public:
  LoadedPlan(PlanContent content, base::Descriptor lock)
      : content_(std::move(content)), lock_(std::move(lock)) {}
  const PlanContent& content() const { return content_; }
  std::span<const uint8_t> bytes() const { return content_.bytes; }
  std::span<const SegmentKey> segments() const { return content_.segments; }
  // The object's, for syncing.
  int descriptor() const { return lock_.get(); }

 private:
  PlanContent content_;
  base::Descriptor lock_;  // holds a shared lock on the object
};

using PlanRef = std::shared_ptr<const LoadedPlan>;

// Finds and writes plan objects in the folders of a store. Thread-safe.
class PlanTable {
 public:
  explicit PlanTable(StoreFolders& folders) : folders_(folders) {}

  // Checks every byte. Errors: kAbsent, kCorrupt (the object is removed where it may be), kForeign,
  // kIoError.
  StoreResult<PlanRef> find(const PlanKey& key);

  // Replaces the plan of this key, if any. Errors as WeightStore::publish.
  StoreResult<PlanRef> write(const PlanKey& key, std::span<const uint8_t> bytes,
                             std::span<const SegmentKey> segments);

 private:
  StoreResult<PlanRef> load(const StoreFolder& folder, const PlanKey& key);
  StoreResult<PlanRef> writeIn(const StoreFolder& folder, const PlanKey& key,
                               std::span<const uint8_t> file, PlanContent content);

  StoreFolders& folders_;
};

}  // namespace hearth::cache
