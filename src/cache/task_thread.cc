// SPDX-License-Identifier: Apache-2.0
#include "cache/task_thread.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/helper_thread.h"

namespace hearth::cache {

TaskThread::TaskThread(const char* name, Priority priority, size_t maxCost)
    : name_(name), priority_(priority), maxCost_(maxCost) {}

TaskThread::~TaskThread() {
  stop(false);
}

// Called under the lock.
bool TaskThread::start() {
  if (state_->stopping) return false;
  if (thread_.joinable()) return true;
  const auto start = priority_ == Priority::kIdle ? base::startIdleThread : base::startHelperThread;
  thread_ = start(name_, [state = state_] { loop(state); });
  return thread_.joinable();
}

bool TaskThread::post(std::function<void()> task, size_t cost) {
  std::unique_lock lock(state_->mutex);
  if (!start()) return false;
  // A task larger than the limit waits until it is alone.
  state_->changed.wait(lock, [&] {
    return state_->stopping || state_->cost == 0 || state_->cost + cost <= maxCost_;
  });
  if (state_->stopping) return false;
  state_->cost += cost;
  state_->queue.push_back({.run = std::move(task), .cost = cost});
  lock.unlock();
  state_->changed.notify_all();
  return true;
}

bool TaskThread::tryPost(std::function<void()> task, size_t cost, size_t limit) {
  std::unique_lock lock(state_->mutex);
  if (!start() || cost > limit || state_->cost > limit - cost) return false;
  state_->cost += cost;
  state_->queue.push_back({.run = std::move(task), .cost = cost});
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

void TaskThread::insertLater(State& state, Task task) {
  const auto place = std::ranges::upper_bound(state.later, task.due, {}, &Task::due);
  state.later.insert(place, std::move(task));
}

bool TaskThread::postHeld(std::function<void()> task, size_t most, size_t cost) {
  const std::lock_guard lock(state_->mutex);
  if (state_->stopping || state_->held.size() >= most) return false;
  state_->held.push_back({.run = std::move(task), .cost = cost});
  return true;
}

// Called under the lock: queues what is kept, or gives it to the caller where no thread can be had.
std::deque<TaskThread::Task> TaskThread::takeHeld() {
  std::deque<Task> taken;
  taken.swap(state_->held);
  if (taken.empty() || !start()) return taken;
  queueHeld(*state_, &taken);
  return {};
}

void TaskThread::queueHeld(State& state, std::deque<Task>* taken) {
  for (Task& task : *taken) {
    state.cost += task.cost;
    state.queue.push_back(std::move(task));
  }
}

void TaskThread::release() {
  std::deque<Task> undone;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->stopping) undone = takeHeld();
  }
  state_->changed.notify_all();
  for (const Task& task : undone) task.run();
}

void TaskThread::releaseLater(std::chrono::nanoseconds delay) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->held.empty() || !start()) return;
    // The thread that runs this keeps the state.
    auto release = [&state = *state_] {
      const std::lock_guard inner(state.mutex);
      std::deque<Task> taken;
      taken.swap(state.held);
      queueHeld(state, &taken);
    };
    insertLater(*state_, {.run = std::move(release), .due = Clock::now() + delay});
  }
  state_->changed.notify_all();
}

void TaskThread::doHeld(size_t maxCost) {
  std::deque<Task> taken;
  {
    const std::lock_guard lock(state_->mutex);
    size_t cost = 0;
    for (const Task& task : state_->held) cost += task.cost;
    if (state_->stopping || cost > maxCost) return;
    taken.swap(state_->held);
  }
  for (const Task& task : taken) task.run();
}

void TaskThread::loop(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    if (runNext(*state, lock)) continue;
    if (state->stopping) return;
    if (state->later.empty()) {
      state->changed.wait(lock);
    } else {
      // A copy: the task may be gone while this waits, and the wait looks at the time again.
      const Clock::time_point due = state->later.front().due;
      state->changed.wait_until(lock, due);
    }
  }
}

bool TaskThread::runNext(State& state, std::unique_lock<std::mutex>& lock) {
  std::deque<Task>* source = &state.queue;
  if (source->empty()) {
    source = &state.later;
    if (state.stopping || source->empty() ||
        (state.waiters == 0 && source->front().due > Clock::now()))
      return false;
  }
  Task task = std::move(source->front());
  source->pop_front();
  ++state.running;
  lock.unlock();
  task.run();
  task.run = nullptr;
  lock.lock();
  --state.running;
  state.cost -= task.cost;
  state.changed.notify_all();
  return true;
}

void TaskThread::waitUntilIdle() {
  release();
  std::unique_lock lock(state_->mutex);
  ++state_->waiters;
  state_->changed.notify_all();
  const auto isIdle = [&] {
    return state_->queue.empty() && state_->later.empty() && state_->running == 0;
  };
  while (!isIdle()) {
    // Whoever waits is not idle: it does the work, at its own priority.
    if (priority_ == Priority::kIdle && runNext(*state_, lock)) continue;
    state_->changed.wait(lock);
  }
  --state_->waiters;
}

void TaskThread::stop(bool finish) {
  std::deque<Task> undone;
  std::deque<Task> dropped;
  std::deque<Task> laterDropped;
  std::deque<Task> heldDropped;
  {
    const std::lock_guard lock(state_->mutex);
    if (finish) undone = takeHeld();
    state_->stopping = true;
    if (!finish) dropped.swap(state_->queue);
    state_->later.swap(laterDropped);
    state_->held.swap(heldDropped);
  }
  state_->changed.notify_all();
  for (const Task& task : undone) task.run();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    // The rest is done here, as long as what the tasks use is still there.
    std::unique_lock lock(state_->mutex);
    while (!state_->queue.empty()) runNext(*state_, lock);
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace hearth::cache
