// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/deadline.h"

namespace hearth::cpu {

// How long an execution may take. Kernels that run graphs of their own read it.
struct RunLimits {
  base::Deadline deadline;
  uint64_t loopTimeoutNanoseconds = 2'000'000'000;  // of one WHILE

  // Those of the execution on the calling thread; the standard ones where there is none.
  static const RunLimits& ofThread();
};

// Sets the limits of the calling thread as long as this exists. Not movable.
class RunLimitsScope {
 public:
  explicit RunLimitsScope(const RunLimits& limits);
  ~RunLimitsScope();
  RunLimitsScope(const RunLimitsScope&) = delete;
  RunLimitsScope& operator=(const RunLimitsScope&) = delete;

 private:
  const RunLimits* const before_;
};

}  // namespace hearth::cpu
