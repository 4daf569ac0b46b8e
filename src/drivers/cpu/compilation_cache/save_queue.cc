// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/compilation_cache/save_queue.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "base/exit_work.h"
#include "base/fork_gate.h"
#include "base/immortal.h"
#include "base/mutex.h"
#include "base/task_thread.h"
#include "drivers/cpu/weights/open_stores.h"

namespace hearth::cpu {
namespace {

using Saves = std::vector<std::shared_ptr<SaveQueue::Save>>;

struct Queue {
  base::Mutex mutex;
  Saves open;  // guarded by mutex
  // A forked child gets a new one and leaves the parent's, whose thread it does not have,
  // untouched.
  base::TaskThread* thread = newThread();

  static base::TaskThread* newThread() {
    return new base::TaskThread("hearth-cache", base::TaskThread::Priority::kNormal, SIZE_MAX);
  }
};

Queue& queue() {
  static constinit base::Immortal<std::unique_ptr<Queue>> only;
  return *only.get([] {
    std::atexit([] {
      if (base::worksAtExit()) static_cast<void>(SaveQueue::finishAll(kExitPatience));
    });
    base::ForkGate::atFork({.afterInChild = [] {
      queue().thread = Queue::newThread();
      queue().open.clear();
    }});
    return std::make_unique<Queue>();
  });
}

}  // namespace

void SaveQueue::Save::finish() {
  if (isOver || generation != base::ForkGate::generation()) return;
  // The store's thread passes the save on to that of the queue.
  store->flush();
  queue().thread->waitUntilIdle();
}

std::shared_ptr<SaveQueue::Save> SaveQueue::post(const hal::CacheToken& token,
                                                 std::shared_ptr<cache::SegmentStore> store,
                                                 std::function<void()> run) {
  auto save = std::make_shared<Save>();
  save->token = token;
  save->store = std::move(store);
  save->run = std::move(run);
  save->generation = base::ForkGate::generation();
  {
    const std::lock_guard lock(queue().mutex);
    queue().open.push_back(save);
  }
  const auto runNow = [save] {
    base::logged("Saving a compilation", save->run);
    const std::lock_guard lock(queue().mutex);
    std::erase(queue().open, save);
    save->isOver = true;
  };
  const Status posted = base::caught([&] {
    save->store->afterPublishing([runNow] {
      if (!queue().thread->post(runNow)) runNow();
    });
  });
  if (!posted) runNow();
  return save;
}

void SaveQueue::waitFor(const hal::CacheToken& token) {
  Saves saves;
  {
    const std::lock_guard lock(queue().mutex);
    std::ranges::copy_if(queue().open, std::back_inserter(saves),
                         [&](const auto& save) { return save->token == token; });
  }
  for (const auto& save : saves) save->finish();
}

bool SaveQueue::finishAll(std::chrono::nanoseconds patience) {
  Saves saves;
  {
    const std::lock_guard lock(queue().mutex);
    saves = queue().open;
  }
  if (saves.empty()) return true;
  bool isDone = true;
  for (const auto& save : saves) isDone &= save->store->flushFor(patience);
  return queue().thread->waitUntilDone(patience) && isDone;
}

}  // namespace hearth::cpu
