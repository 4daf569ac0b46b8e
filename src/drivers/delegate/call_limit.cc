// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/call_limit.h"

#include <unistd.h>

#include "base/helper_thread.h"
#include "base/log.h"

namespace hearth::drivers::delegate {

CallLimit::CallLimit(const std::string& library, std::chrono::seconds limit) {
  if (limit.count() <= 0) return;
  thread_ = base::startHelperThread("hearth-limit", [this, library, limit] {
    std::unique_lock lock(mutex_);
    if (over_.wait_for(lock, limit, [this] { return isOver_; })) return;
    base::logError("The delegate {} has not returned for {} seconds, so its host ends.", library,
                   limit.count());
    ::_exit(1);
  });
}

CallLimit::~CallLimit() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    isOver_ = true;
  }
  over_.notify_one();
  thread_.join();
}

}  // namespace hearth::drivers::delegate
