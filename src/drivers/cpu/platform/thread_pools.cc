// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/platform/thread_pools.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/immortal.h"
#include "base/mutex.h"
#include "base/useful_threads.h"

namespace hearth::cpu {
namespace {

constinit base::Mutex mutex;
constinit base::Immortal<std::map<unsigned, std::weak_ptr<threads::ThreadPool>>> pools;

}  // namespace

Result<std::shared_ptr<threads::ThreadPool>> sharedThreadPool(unsigned threads) {
  if (threads == 0)
    threads =
        static_cast<unsigned>(std::min(base::usefulThreads(), threads::ThreadPool::kMaxThreads));
  const std::lock_guard lock(mutex);
  std::weak_ptr<threads::ThreadPool>& known = pools.get()[threads];
  if (auto pool = known.lock()) return pool;
  HEARTH_ASSIGN(std::unique_ptr<threads::ThreadPool> created,
                threads::ThreadPool::createAsleep(threads));
  std::shared_ptr<threads::ThreadPool> pool = std::move(created);
  known = pool;
  return pool;
}

}  // namespace hearth::cpu
