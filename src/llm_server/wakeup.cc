// SPDX-License-Identifier: Apache-2.0
#include "llm_server/wakeup.h"

#include <unistd.h>

#include <utility>

namespace hearth::llm_server {

void Wakeup::add(uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    const bool isAwake = !ids_.empty();
    ids_.push_back(id);
    if (isAwake) return;
  }
  const uint64_t one = 1;
  // It fails when the counter is full, and then the thread wakes up anyway.
  static_cast<void>(::write(event_.get(), &one, sizeof one) == sizeof one);
}

std::vector<uint64_t> Wakeup::take() {
  uint64_t count = 0;
  static_cast<void>(::read(event_.get(), &count, sizeof count) == sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(ids_, {});
}

}  // namespace hearth::llm_server
