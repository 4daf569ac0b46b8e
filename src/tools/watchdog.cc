// SPDX-License-Identifier: Apache-2.0
#include "tools/watchdog.h"

#include <unistd.h>

#include <algorithm>

#include "base/format.h"
#include "tools/failure.h"

namespace hearth::tools {
namespace {

constexpr std::chrono::seconds kPatience(1);
constexpr std::chrono::milliseconds kRefresh(250);
// A longer limit than a year counts as none, which also keeps the clock from overflowing.
constexpr double kLongestLimit = 365.0 * 24 * 3600;

void writeError(const std::string& text) {
  // Not through a stream, whose lock another thread may hold for ever.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

Watchdog::Watchdog(double timeoutSeconds)
    : timeoutSeconds_(timeoutSeconds),
      deadline_(timeoutSeconds > 0 && timeoutSeconds < kLongestLimit
                    ? Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                         std::chrono::duration<double>(timeoutSeconds))
                    : Clock::time_point::max()),
      isTerminal_(isatty(STDERR_FILENO) == 1) {
  if (isTerminal_ || deadline_ != Clock::time_point::max())
    thread_ = std::thread([this] { work(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    isEnding_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  clearProgress();
}

void Watchdog::beginStage(std::string stage) {
  const std::lock_guard lock(mutex_);
  clearProgress();
  stage_ = std::move(stage);
  stageBegin_ = Clock::now();
}

void Watchdog::work() {
  std::unique_lock lock(mutex_);
  while (!isEnding_) {
    const Clock::time_point now = Clock::now();
    if (now >= deadline_) endProcess();
    if (isTerminal_) showProgress(now);
    if (isTerminal_)
      changed_.wait_until(lock, std::min(deadline_, now + kRefresh));
    else
      changed_.wait_until(lock, deadline_);
  }
}

void Watchdog::showProgress(Clock::time_point now) {
  if (stage_.empty() || now - stageBegin_ < kPatience) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - stageBegin_).count();
  writeError(base::formatText("\r\033[Khearth: {} ({} s)", stage_, seconds));
  isShown_ = true;
}

void Watchdog::clearProgress() {
  if (isShown_) writeError("\r\033[K");
  isShown_ = false;
}

void Watchdog::endProcess() {
  clearProgress();
  writeError(base::formatText("hearth: The time limit of {} s passes while {}.\n", timeoutSeconds_,
                              stage_.empty() ? "starting" : stage_));
  _exit(kExitFailure);
}

}  // namespace hearth::tools
