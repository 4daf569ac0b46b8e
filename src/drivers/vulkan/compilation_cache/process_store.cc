// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/compilation_cache/process_store.h"

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/exit_work.h"
#include "base/immortal.h"
#include "base/mutex.h"
#include "cache/open_store.h"

namespace hearth::vulkan {
namespace {

// An exiting process waits this long for work without progress, such as on a disk that hangs.
constexpr std::chrono::seconds kExitPatience{10};

struct OpenedStore {
  base::Mutex mutex;
  std::weak_ptr<cache::SegmentStore> store;
};

void flushBeforeExit();

OpenedStore& openedStore() {
  static constinit base::Immortal<OpenedStore> opened;
  return opened.get([] {
    std::atexit(flushBeforeExit);
    return OpenedStore();
  });
}

void flushBeforeExit() {
  std::shared_ptr<cache::SegmentStore> store;
  {
    const std::lock_guard lock(openedStore().mutex);
    store = openedStore().store.lock();
  }
  if (store == nullptr || !base::worksAtExit() || store->flushFor(kExitPatience)) return;
  // Leaked: its destructor would wait for the work that hangs.
  new std::shared_ptr<cache::SegmentStore>(std::move(store));
}

}  // namespace

std::shared_ptr<cache::SegmentStore> openProcessStore() {
  const auto options = cache::StoreOptions::fromEnvironment();
  if (!options) return nullptr;
  std::shared_ptr<cache::SegmentStore> store = cache::openSegmentStore(*options);
  const std::lock_guard lock(openedStore().mutex);
  openedStore().store = store;
  return store;
}

}  // namespace hearth::vulkan
