// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include "hearth/hearth.hpp"

namespace hearth::llm {

// What ends a computation before its end.
struct StepLimits {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  // Set by any thread; looked at between runs of the model. It must outlive the computation.
  const std::atomic<bool>* isCancelled = nullptr;

  // Runs until the deadline at most. Throws Exception.
  void run(Execution* execution) const {
    if (!deadline) return execution->run();
    const std::chrono::nanoseconds left = *deadline - std::chrono::steady_clock::now();
    execution->run(std::max(left, std::chrono::nanoseconds(1)));
  }
};

}  // namespace hearth::llm
