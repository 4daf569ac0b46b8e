// SPDX-License-Identifier: Apache-2.0
#include "base/write_progress.h"

#include <atomic>

namespace hearth::base {
namespace {

constinit std::atomic<uint64_t> writes = 0;

}  // namespace

void noteWrite() {
  writes.fetch_add(1, std::memory_order_relaxed);
}

uint64_t writeProgress() {
  return writes.load(std::memory_order_relaxed);
}

}  // namespace hearth::base
