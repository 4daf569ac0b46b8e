// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/open_stores.h"

#include <mutex>
#include <utility>
#include <vector>

#include "base/exit_work.h"
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
    if (!base::worksAtExit()) return;
    std::vector<std::weak_ptr<cache::SegmentStore>> all;
    {
      const std::lock_guard lock(openStores().mutex);
      all = std::move(openStores().all);
    }
    for (const auto& weak : all) {
      const auto store = weak.lock();
      if (store == nullptr) continue;
      store->flush();
      store->checkBeforeExit();
    }
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

cache::StoreResult<cache::StoreOptions> storeOptions(const hal::PrepareOptions& options) {
  cache::StoreOptions wanted;
  if (options.store) {
    wanted = *options.store;
  } else {
    HEARTH_ASSIGN(wanted, cache::StoreOptions::fromEnvironment());
  }
  wanted.fingerprint = storeFingerprint();
  return wanted;
}

}  // namespace

std::shared_ptr<cache::SegmentStore> openStore(const hal::PrepareOptions& options) {
  const base::TraceSpan span("start", "open the store");
  auto wanted = storeOptions(options);
  if (!wanted) return std::make_shared<cache::AnonymousStore>(std::move(wanted.error()));
  std::shared_ptr<cache::SegmentStore> store = cache::openSegmentStore(*wanted);
  remember(store);
  return store;
}

void flushStores() {
  std::vector<std::shared_ptr<cache::SegmentStore>> held;
  {
    const std::lock_guard lock(openStores().mutex);
    for (const auto& weak : openStores().all) held.push_back(weak.lock());
  }
  for (const auto& store : held)
    if (store != nullptr) store->flush();
}

std::shared_ptr<cache::SegmentStore> openStoreForLooking(const hal::PrepareOptions& options) {
  auto wanted = storeOptions(options);
  if (!wanted) return std::make_shared<cache::AnonymousStore>(std::move(wanted.error()));
  if (wanted->mode == cache::StoreMode::kReadWrite) wanted->mode = cache::StoreMode::kReadOnly;
  return cache::openSegmentStore(*wanted);
}

}  // namespace hearth::cpu
