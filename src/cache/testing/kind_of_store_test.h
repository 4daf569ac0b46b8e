// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "cache/open_store.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {

// Options for a store of a kind, in a folder.
inline StoreOptions optionsOfKind(PlanCapacity kind, const std::filesystem::path& folder) {
  StoreOptions options;
  if (kind == PlanCapacity::kMany) options.path = (folder / "store").string();
  if (kind == PlanCapacity::kOne) options.bundle = (folder / "bundle").string();
  if (kind == PlanCapacity::kNone) options.mode = StoreMode::kOff;
  return options;
}

// A test of what every kind of store promises, with a store in a folder of its own.
class KindOfStoreTest : public testing::TestWithParam<PlanCapacity> {
 protected:
  bool isKept() const { return GetParam() != PlanCapacity::kNone; }
  virtual StoreOptions options(StoreMode mode = StoreMode::kReadWrite) const {
    StoreOptions options = optionsOfKind(GetParam(), folder_.path());
    if (isKept()) options.mode = mode;
    return options;
  }
  std::shared_ptr<SegmentStore> open(StoreMode mode = StoreMode::kReadWrite) const {
    const auto store = openSegmentStore(options(mode));
    EXPECT_EQ(store->planCapacity(), GetParam());
    return store;
  }

  TempFolder folder_{TempFolder::Place::kMemory};
};

}  // namespace hearth::cache
