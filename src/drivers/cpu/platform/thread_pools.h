// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {

// The process's pool of `threads` threads (0 = one for each processor that it may use): prepared
// models with the same number share it. Thread-safe.
Result<std::shared_ptr<threads::ThreadPool>> sharedThreadPool(unsigned threads);

}  // namespace hearth::cpu
