// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/open_stores.h"

#include <mutex>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "cache/anonymous_store.h"
#include "drivers/cpu/build_identity.h"

namespace hearth::cpu {
namespace {

struct OpenStores {
  std::mutex mutex;
  std::shared_ptr<cache::SegmentStore> latest;
  std::vector<std::weak_ptr<cache::SegmentStore>> all;
};

// Never destroyed: threads may still prepare models while the process exits.
OpenStores& openStores() {
  static OpenStores* const stores = new OpenStores;
  return *stores;
}

struct ExitFlush {
  ~ExitFlush() {
    std::vector<std::weak_ptr<cache::SegmentStore>> all;
    {
      const std::lock_guard lock(openStores().mutex);
      all = std::move(openStores().all);
    }
    for (const auto& weak : all)
      if (const auto store = weak.lock()) store->flush();
  }
};

void remember(const std::shared_ptr<cache::SegmentStore>& store) {
  static const ExitFlush flush;
  OpenStores& known = openStores();
  // These close without the lock: they may have work to finish.
  std::shared_ptr<cache::SegmentStore> before;
  std::vector<std::shared_ptr<cache::SegmentStore>> held;
  const std::lock_guard lock(known.mutex);
  if (known.latest == store) return;
  before = std::exchange(known.latest, store);
  std::erase_if(known.all, [&](const auto& weak) {
    held.push_back(weak.lock());
    return held.back() == nullptr || held.back() == store;
  });
  known.all.push_back(store);
}

}  // namespace

std::shared_ptr<cache::SegmentStore> openStore(const hal::PrepareOptions& options) {
  const base::TraceSpan span("start", "open the store");
  cache::StoreOptions wanted;
  if (options.store) {
    wanted = *options.store;
  } else if (auto standard = cache::StoreOptions::fromEnvironment()) {
    wanted = std::move(*standard);
  } else {
    return std::make_shared<cache::AnonymousStore>(std::move(standard.error()));
  }
  wanted.fingerprint = storeFingerprint();
  std::shared_ptr<cache::SegmentStore> store = cache::openSegmentStore(wanted);
  remember(store);
  return store;
}

}  // namespace hearth::cpu
