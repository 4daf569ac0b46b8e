// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace hearth::tools {

// Watches a command from a thread of its own. When a stage takes longer than a second and standard
// error is a terminal, it shows that there. When the time limit passes, it writes a sentence and
// ends the process with exit code 1, whatever the other threads are doing.
class Watchdog {
 public:
  // Starts the time; `timeoutSeconds` 0 = no limit.
  explicit Watchdog(double timeoutSeconds);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // A present participle for both messages: "preparing the model".
  void beginStage(std::string stage);

 private:
  using Clock = std::chrono::steady_clock;

  void work();
  void showProgress(Clock::time_point now);
  void clearProgress();
  [[noreturn]] void endProcess();

  const double timeoutSeconds_;
  const Clock::time_point deadline_;
  const bool isTerminal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string stage_;
  Clock::time_point stageBegin_ = Clock::now();
  bool isShown_ = false;
  bool isEnding_ = false;
  std::thread thread_;
};

}  // namespace hearth::tools
