// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/open_stores.h"

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "base/exit_work.h"
#include "base/immortal.h"
#include "base/mutex.h"
#include "base/trace.h"
#include "cache/anonymous_store.h"
#include "cache/open_store.h"
#include "drivers/cpu/platform/build_identity.h"

namespace hearth::cpu {
namespace {

struct OpenStores {
  base::Mutex mutex;
  std::shared_ptr<cache::SegmentStore> latest;
  std::vector<std::weak_ptr<cache::SegmentStore>> all;
};

OpenStores& openStores() {
  static constinit base::Immortal<OpenStores> stores;
  return stores.get([] {
    // The library does nothing else at exit. It destroys nothing, because other threads may go on
    // using it.
    std::atexit([] { static_cast<void>(flushBeforeExit(kExitPatience)); });
    return OpenStores();
  });
}

void remember(const std::shared_ptr<cache::SegmentStore>& store) {
  OpenStores& known = openStores();
  // Declared before the lock, so that stores close after it is released: they may have work to
  // finish.
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

std::vector<std::shared_ptr<cache::SegmentStore>> heldStores() {
  std::vector<std::shared_ptr<cache::SegmentStore>> held;
  const std::lock_guard lock(openStores().mutex);
  for (const auto& weak : openStores().all)
    if (auto store = weak.lock()) held.push_back(std::move(store));
  return held;
}

cache::StoreResult<cache::StoreOptions> storeOptions(const hal::PrepareOptions& options) {
  HEARTH_ASSIGN(cache::StoreOptions wanted, cache::StoreOptions::fromTexts(options.driverOptions));
  wanted.fingerprint = storeFingerprint();
  return wanted;
}

}  // namespace

bool flushBeforeExit(std::chrono::nanoseconds patience) {
  if (!base::worksAtExit()) return true;
  bool isDone = true;
  for (const auto& store : heldStores()) {
    if (store->flushFor(patience)) {
      store->checkBeforeExit();
      continue;
    }
    isDone = false;
    // Leaked: its destructor would wait for the work that hangs.
    new std::shared_ptr<cache::SegmentStore>(store);
  }
  return isDone;
}

std::shared_ptr<cache::SegmentStore> openStore(const hal::PrepareOptions& options) {
  const base::TraceSpan span("start", "open the store");
  auto wanted = storeOptions(options);
  if (!wanted) return std::make_shared<cache::AnonymousStore>(std::move(wanted.error()));
  std::shared_ptr<cache::SegmentStore> store = cache::openSegmentStore(*wanted);
  remember(store);
  return store;
}

void flushStores() {
  for (const auto& store : heldStores()) store->flush();
}

std::shared_ptr<cache::SegmentStore> openStoreForLooking(const hal::PrepareOptions& options) {
  auto wanted = storeOptions(options);
  if (!wanted) return std::make_shared<cache::AnonymousStore>(std::move(wanted.error()));
  if (wanted->mode == cache::StoreMode::kReadWrite) wanted->mode = cache::StoreMode::kReadOnly;
  return cache::openSegmentStore(*wanted);
}

}  // namespace hearth::cpu
