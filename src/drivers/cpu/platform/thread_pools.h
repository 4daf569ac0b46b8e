// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {

// The process's pool of `threads` threads (0 = base::usefulThreads()).
// Prepared models with the same number share it; its threads start later. Error: as
// ThreadPool::createAsleep(). Thread-safe.
Result<std::shared_ptr<threads::ThreadPool>> sharedThreadPool(unsigned threads);

}  // namespace hearth::cpu
