// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "ipc/testing/comes_true.h"

namespace hearth::ipc {

// Threads that compute again and again while hosts die under them.
class ComputingThreads {
 public:
  // Computes once. Returns whether there was a result, and an error if it was wrong.
  using Step = std::function<Result<bool>()>;

  // Each of `count` threads repeats the step that makeStep(its number) makes, until stop() or until
  // its step returns an error.
  ComputingThreads(int count, std::function<Step(int)> makeStep)
      : failures_(static_cast<size_t>(count)) {
    for (int thread = 0; thread < count; ++thread)
      threads_.emplace_back([this, thread, makeStep] { repeat(thread, makeStep(thread)); });
  }
  ~ComputingThreads() { stop(); }
  ComputingThreads(const ComputingThreads&) = delete;
  ComputingThreads& operator=(const ComputingThreads&) = delete;

  // Waits for one more result than there are now, or for an error. False: neither came in time.
  bool waitForResult() const {
    const int before = results_;
    return comesTrue([&] { return results_ > before || hasFailed_; });
  }
  bool hasFailed() const { return hasFailed_; }

  // Ends all threads and returns the errors, in the order of the threads.
  std::vector<std::string> stop() {
    isOver_ = true;
    threads_.clear();
    std::vector<std::string> errors;
    for (const std::string& failure : failures_)
      if (!failure.empty()) errors.push_back(failure);
    return errors;
  }

 private:
  void repeat(int thread, const Step& step) {
    while (!isOver_) {
      const Result<bool> hasResult = step();
      if (!hasResult) {
        failures_[static_cast<size_t>(thread)] = hasResult.error().toString();
        hasFailed_ = true;
        return;
      }
      if (*hasResult) ++results_;
    }
  }

  std::vector<std::string> failures_;
  std::atomic<bool> isOver_ = false;
  std::atomic<bool> hasFailed_ = false;
  std::atomic<int> results_ = 0;
  std::vector<std::jthread> threads_;
};

// What a step returns for an execution: true for a result that `isRight`, false for a dead host.
inline Result<bool> stepResult(const Status& status, bool isRight) {
  if (status && !isRight) return fail(ErrorCode::kOpFailed, "The result is wrong.");
  if (!status && status.error().code() != ErrorCode::kDeadObject)
    return std::unexpected(status.error());
  return status.has_value();
}

}  // namespace hearth::ipc
