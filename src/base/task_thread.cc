// SPDX-License-Identifier: Apache-2.0
#include "base/task_thread.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/caught.h"
#include "base/fork_gate.h"
#include "base/helper_thread.h"
#include "base/thread_local.h"
#include "base/write_progress.h"

namespace hearth::base {
namespace {

constexpr std::chrono::milliseconds kLookAtProgress{50};

// The task that the calling thread is running.
struct Current {
  const void* state = nullptr;
  uint64_t number = 0;
};
HEARTH_THREAD_LOCAL constinit Current current;

}  // namespace

TaskThread::TaskThread(const char* name, Priority priority, size_t maxCost)
    : name_(name), priority_(priority), maxCost_(maxCost) {
  state_->isOrdered = priority == Priority::kNormal;
  state_->running.reserve(8);  // no allocation is needed later, so no number is lost
}

TaskThread::~TaskThread() {
  stop(false);
}

// Called with the lock held.
bool TaskThread::start() {
  if (state_->stopping) return false;
  if (thread_.joinable()) return true;
  const auto start = priority_ == Priority::kIdle ? startIdleThread : startHelperThread;
  // If memory for a thread runs out, there is none.
  static_cast<void>(caught(
      [&] { thread_ = start(name_, [state = state_] { loop(state); }, Processors::kOfProcess); }));
  return thread_.joinable();
}

void TaskThread::startNow() {
  const std::lock_guard lock(state_->mutex);
  static_cast<void>(start());
}

bool TaskThread::post(std::function<void()> task, size_t cost) {
  std::unique_lock lock(state_->mutex);
  if (!start()) return false;
  // A task larger than the limit waits until it is alone. A task without cost never waits, since it
  // may be posted by this very thread. A caller that keeps forks waiting does not wait either,
  // since the tasks may come to the same gate.
  if (!ForkGate::isInside())
    state_->changed.wait(lock, [&] {
      return state_->stopping || cost == 0 || state_->cost == 0 || state_->cost + cost <= maxCost_;
    });
  if (state_->stopping) return false;
  enqueue(*state_, {.run = std::move(task), .cost = cost});
  lock.unlock();
  state_->changed.notify_all();
  return true;
}

bool TaskThread::tryPost(std::function<void()> task, size_t cost, size_t limit) {
  std::unique_lock lock(state_->mutex);
  if (!start() || cost > limit || state_->cost > limit - cost) return false;
  enqueue(*state_, {.run = std::move(task), .cost = cost});
  lock.unlock();
  state_->changed.notify_all();
  return true;
}

bool TaskThread::postLater(std::function<void()> task, std::chrono::nanoseconds delay) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!start()) return false;
    insertLater(*state_, {.run = std::move(task), .due = Clock::now() + delay});
  }
  state_->changed.notify_all();
  return true;
}

// A task posted by a task gets its number, since a thread that waits for one waits for both.
void TaskThread::setNumber(State& state, Task& task) {
  task.number = current.state == &state ? current.number : ++state.posted;
}

void TaskThread::enqueue(State& state, Task task) {
  setNumber(state, task);
  const size_t cost = task.cost;
  state.queue.push_back(std::move(task));
  state.cost += cost;
}

void TaskThread::insertLater(State& state, Task task) {
  setNumber(state, task);
  const auto place = std::ranges::upper_bound(state.later, task.due, {}, &Task::due);
  state.later.insert(place, std::move(task));
}

bool TaskThread::postHeld(std::function<void()> task, size_t most, size_t cost) {
  const std::lock_guard lock(state_->mutex);
  if (state_->stopping || state_->held.size() >= most) return false;
  state_->held.push_back({.run = std::move(task), .cost = cost});
  return true;
}

// Called with the lock held. Queues the kept tasks, or returns them when no thread can be had.
std::list<TaskThread::Task> TaskThread::takeHeld() {
  std::list<Task> taken;
  taken.swap(state_->held);
  if (taken.empty() || !start()) return taken;
  queueHeld(*state_, &taken);
  return {};
}

void TaskThread::queueHeld(State& state, std::list<Task>* taken) {
  for (Task& task : *taken) {
    setNumber(state, task);
    state.cost += task.cost;
  }
  state.queue.splice(state.queue.end(), *taken);
}

void TaskThread::release() {
  std::list<Task> undone;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->stopping) undone = takeHeld();
  }
  state_->changed.notify_all();
  for (const Task& task : undone) run(task);
}

void TaskThread::releaseLater(std::chrono::nanoseconds delay) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->held.empty() || !start()) return;
    // The thread that runs this keeps the state alive.
    auto release = [&state = *state_] {
      const std::lock_guard inner(state.mutex);
      std::list<Task> taken;
      taken.swap(state.held);
      queueHeld(state, &taken);
    };
    insertLater(*state_, {.run = std::move(release), .due = Clock::now() + delay});
  }
  state_->changed.notify_all();
}

void TaskThread::run(const Task& task) noexcept {
  logged("A task in the background", task.run);
}

void TaskThread::loop(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    if (runNext(*state, lock)) continue;
    const bool isTurnOfOther = state->isOrdered && !state->running.empty();
    if (state->stopping && !isTurnOfOther) return;
    if (state->later.empty() || isTurnOfOther) {
      state->changed.wait(lock);
    } else {
      // Copied, since the task may be gone while this waits, and the wait looks at the time again.
      const Clock::time_point due = state->later.front().due;
      state->changed.wait_until(lock, due);
    }
  }
}

bool TaskThread::runNext(State& state, std::unique_lock<std::mutex>& lock) {
  if (state.isOrdered && !state.running.empty()) return false;
  std::list<Task>* source = &state.queue;
  if (source->empty()) {
    source = &state.later;
    if (state.stopping || source->empty() ||
        (state.waiters == 0 && source->front().due > Clock::now()))
      return false;
  }
  Task task = std::move(source->front());
  source->pop_front();
  state.running.push_back(task.number);
  lock.unlock();
  const Current before = std::exchange(current, {&state, task.number});
  run(task);
  task.run = nullptr;
  current = before;
  lock.lock();
  if (const auto own = std::ranges::find(state.running, task.number); own != state.running.end())
    state.running.erase(own);
  ++state.finished;
  state.cost -= task.cost;
  state.changed.notify_all();
  return true;
}

bool TaskThread::State::hasUpTo(uint64_t number) const {
  const auto isWaitedFor = [&](const Task& task) {
    return task.number <= number;
  };
  return std::ranges::any_of(queue, isWaitedFor) || std::ranges::any_of(later, isWaitedFor) ||
         std::ranges::any_of(running, [&](uint64_t other) { return other <= number; });
}

// A task that waits for others counts as done for them. Called with the lock held.
void TaskThread::leaveOwnTask(State& state) {
  if (current.state != &state) return;
  const auto own = std::ranges::find(state.running, current.number);
  if (own != state.running.end()) state.running.erase(own);
}

bool TaskThread::waitUntilDone(std::chrono::nanoseconds patience) {
  release();
  const std::shared_ptr<State> state = state_;  // a task may destroy this object
  std::unique_lock lock(state->mutex);
  leaveOwnTask(*state);
  // Later tasks do not count, since others may post for ever.
  const uint64_t last = state->posted;
  ++state->waiters;
  state->changed.notify_all();
  uint64_t progress = writeProgress();
  Clock::time_point lastMove = Clock::now();
  bool isHopeless = false;
  // On a busy machine the thread may get no processor. The waiting thread runs the tasks itself, at
  // its own priority; if it waits for a limited time, another thread does.
  bool isHelped = false;
  if (patience != std::chrono::nanoseconds::max() && state->hasUpTo(last)) {
    std::thread helper = startHelperThread("hearth-flush", [state, last] {
      std::unique_lock own(state->mutex);
      while (state->hasUpTo(last))
        if (!runNext(*state, own)) state->changed.wait(own);
    });
    isHelped = helper.joinable();
    if (isHelped) helper.detach();
  }
  while (state->hasUpTo(last) && !isHopeless) {
    const size_t before = state->finished;
    if (!isHelped && runNext(*state, lock)) {
      lastMove = Clock::now();
      continue;
    }
    state->changed.wait_for(lock, kLookAtProgress);
    if (const uint64_t now = writeProgress(); now != progress || state->finished != before) {
      progress = now;
      lastMove = Clock::now();
    }
    isHopeless = Clock::now() - lastMove >= patience;
  }
  --state->waiters;
  return !isHopeless;
}

void TaskThread::stop(bool finish) {
  std::list<Task> undone;
  std::list<Task> dropped;
  std::list<Task> laterDropped;
  std::list<Task> heldDropped;
  {
    const std::lock_guard lock(state_->mutex);
    leaveOwnTask(*state_);
    if (finish) undone = takeHeld();
    state_->stopping = true;
    if (!finish) dropped.swap(state_->queue);
    state_->later.swap(laterDropped);
    state_->held.swap(heldDropped);
  }
  state_->changed.notify_all();
  for (const Task& task : undone) run(task);
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    // The remaining tasks run here, while what they use still exists.
    std::unique_lock lock(state_->mutex);
    while (!state_->queue.empty())
      if (!runNext(*state_, lock)) state_->changed.wait(lock);
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace hearth::base
