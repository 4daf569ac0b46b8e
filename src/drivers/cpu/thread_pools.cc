// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/thread_pools.h"

#include <sched.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace hearth::cpu {

Result<std::shared_ptr<threads::ThreadPool>> sharedThreadPool(unsigned threads) {
  static std::mutex mutex;
  static std::map<unsigned, std::weak_ptr<threads::ThreadPool>> pools;
  if (threads == 0) {
    cpu_set_t set;
    threads = sched_getaffinity(0, sizeof(set), &set) == 0
                  ? static_cast<unsigned>(std::max(1, CPU_COUNT(&set)))
                  : 1;
  }
  std::lock_guard lock(mutex);
  if (auto pool = pools[threads].lock()) return pool;
  HEARTH_ASSIGN(std::unique_ptr<threads::ThreadPool> created,
                threads::ThreadPool::createAsleep(threads));
  std::shared_ptr<threads::ThreadPool> pool = std::move(created);
  pools[threads] = pool;
  return pool;
}

}  // namespace hearth::cpu
