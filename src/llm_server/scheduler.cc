// SPDX-License-Identifier: Apache-2.0
#include "llm_server/scheduler.h"

#include <algorithm>
#include <utility>

namespace hearth::llm_server {
namespace {

// How soon a waiting task learns that nobody wants it when no other task runs.
constexpr std::chrono::milliseconds kPatience{100};

}  // namespace

void Scheduler::add(std::unique_ptr<Task> task) {
  {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void Scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    isStopped_ = true;
  }
  changed_.notify_one();
}

// Returns false when the scheduler is stopped.
bool Scheduler::takeAdded() {
  std::unique_lock lock(mutex_);
  const auto isChanged = [&] {
    return isStopped_ || !added_.empty();
  };
  if (running_.empty()) {
    if (waiting_.empty())
      changed_.wait(lock, isChanged);
    else
      changed_.wait_for(lock, kPatience, isChanged);
  }
  for (std::unique_ptr<Task>& task : added_) waiting_.push_back(std::move(task));
  added_.clear();
  return !isStopped_;
}

void Scheduler::startWaiting() {
  std::erase_if(waiting_, [](const std::unique_ptr<Task>& task) { return !task->isWanted(); });
  while (!waiting_.empty()) {
    const Task::Start start = waiting_.front()->start();
    if (start == Task::Start::kMustWait) break;
    std::unique_ptr<Task> task = std::move(waiting_.front());
    waiting_.pop_front();
    if (start == Task::Start::kEnded) continue;
    // It has no advantage over those that run for long already.
    Clock::duration used{};
    if (!running_.empty()) used = std::ranges::min_element(running_, {}, &Running::used)->used;
    running_.push_back({std::move(task), used});
  }
}

void Scheduler::runOne() {
  const auto next = std::ranges::min_element(running_, {}, &Running::used);
  if (next == running_.end()) return;
  const Clock::time_point begin = now_();
  const bool goesOn = next->task->isWanted() && next->task->step();
  next->used += now_() - begin;
  if (!goesOn) running_.erase(next);
}

void Scheduler::run() {
  while (takeAdded()) {
    startWaiting();
    runOne();
    runningCount_ = running_.size();
    waitingCount_ = waiting_.size();
  }
  running_.clear();
  waiting_.clear();
}

}  // namespace hearth::llm_server
