// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/thread_local.h"

namespace hearth::base {

// Of this thread, for CancellationScope.
HEARTH_THREAD_LOCAL constinit inline const std::atomic<bool>* cancellationFlag = nullptr;

// Lets runs that the calling thread starts end before their next operation once *flag is set, by
// any thread. The flag must outlive the scope. Scopes nest; the innermost one counts.
class CancellationScope {
 public:
  explicit CancellationScope(const std::atomic<bool>* flag) : before_(cancellationFlag) {
    cancellationFlag = flag;
  }
  ~CancellationScope() { cancellationFlag = before_; }
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  const std::atomic<bool>* const before_;
};

// The flag that ends runs of the calling thread; null if there is none.
inline const std::atomic<bool>* cancellationOfThread() {
  return cancellationFlag;
}

}  // namespace hearth::base
