// SPDX-License-Identifier: Apache-2.0
#include "cache/open_store.h"

#include "cache/anonymous_store.h"
#include "cache/bundle/bundle_store.h"
#include "cache/folder/weight_store.h"

namespace hearth::cache {

std::shared_ptr<SegmentStore> openSegmentStore(const StoreOptions& options) {
  if (!options.bundle.empty()) {
    auto bundle = BundleStore::open(options);
    if (bundle) return *bundle;
    return std::make_shared<AnonymousStore>(std::move(bundle.error()));
  }
  auto store = WeightStore::open(options);
  if (store) return *store;
  return std::make_shared<AnonymousStore>(std::move(store.error()));
}

}  // namespace hearth::cache
