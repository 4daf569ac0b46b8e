// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

namespace hearth::llm {

// What ends a computation before its end.
struct StepLimits {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  // Set by any thread; looked at between runs of the model. It must outlive the computation.
  const std::atomic<bool>* isCancelled = nullptr;
};

}  // namespace hearth::llm
