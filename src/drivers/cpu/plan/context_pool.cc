// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/context_pool.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace hearth::cpu {

// The most contexts of a small plan that are bound to buffers that come in turn.
constexpr size_t kMostInTurn = 2;
constexpr uint64_t kSmallArena = 256 << 10;

using Contexts = std::vector<std::unique_ptr<ExecutionContext>>;

Contexts ContextPool::beginVersion() {
  // A context of the last version that is given back meanwhile may still get into recent_. Whoever
  // takes it sees that it is not in force.
  version_.fetch_add(1);
  std::unique_ptr<ExecutionContext> recent(recent_.exchange(nullptr));
  Contexts before = std::move(idle_);
  idle_.clear();
  before.push_back(std::move(recent));
  return before;
}

void ContextPool::addIdle(std::unique_ptr<ExecutionContext>& context) {
  if (context != nullptr && isInForce(*context)) idle_.push_back(std::move(context));
}

void ContextPool::setPlan(std::unique_ptr<Planned> planned,
                          std::unique_ptr<ExecutionContext> first) {
  Contexts before;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  choices_ = first->kernels().choices();
  memory_ = first->memory();
  plans_.push_back(std::move(planned));
  before = beginVersion();
  first->setPoolVersion(version_.load());
  idle_.push_back(std::move(first));
}

const Plan& ContextPool::plan() const {
  const std::lock_guard lock(mutex_);
  return plans_.back()->plan;
}

std::unique_ptr<ExecutionContext> ContextPool::takeRecent(
    std::span<const ExecutionContext::Buffer> inputs,
    std::span<const ExecutionContext::Buffer> outputs, std::unique_ptr<ExecutionContext>* other) {
  std::unique_ptr<ExecutionContext> context(recent_.exchange(nullptr));
  if (context == nullptr || (isInForce(*context) && context->isBoundTo(inputs, outputs)))
    return context;
  *other = std::move(context);
  return nullptr;
}

std::unique_ptr<ExecutionContext> ContextPool::takeIdle(
    std::span<const ExecutionContext::Buffer> inputs,
    std::span<const ExecutionContext::Buffer> outputs) {
  std::unique_ptr<ExecutionContext> recent;  // destroyed without the lock
  if (auto context = takeRecent(inputs, outputs, &recent)) return context;
  const std::lock_guard lock(mutex_);
  addIdle(recent);
  if (idle_.empty()) return nullptr;
  const auto bound = std::ranges::find_if(
      idle_, [&](const auto& context) { return context->isBoundTo(inputs, outputs); });
  // Else the one whose memory is in the caches; of a small plan the one that was used longest ago,
  // since the buffers of the others may come again.
  auto taken = bound != idle_.end() ? bound : idle_.end() - 1;
  if (bound == idle_.end() && idle_.back()->isBound() &&
      plans_.back()->plan.arenaBytes <= kSmallArena) {
    if (idle_.size() < kMostInTurn && idle_.back()->wasBoundTo(inputs, outputs)) return nullptr;
    taken = idle_.begin();
  }
  std::unique_ptr<ExecutionContext> context = std::move(*taken);
  idle_.erase(taken);
  return context;
}

Result<std::unique_ptr<ExecutionContext>> ContextPool::make(threads::ThreadPool* pool) const {
  const Plan* plan = nullptr;
  std::shared_ptr<const KernelChoices> choices;
  std::shared_ptr<ActivationMemory> memory;
  uint64_t version = 0;
  {
    const std::lock_guard lock(mutex_);
    version = version_.load();
    plan = &plans_.back()->plan;
    choices = choices_;
    memory = memory_;
  }
  auto kernels = std::make_shared<KernelFactory>(*plan, pool, std::move(choices));
  HEARTH_TRY(kernels->makeAll());
  HEARTH_ASSIGN(auto context,
                ExecutionContext::create(*plan, std::move(kernels), std::move(memory)));
  context->setPoolVersion(version);
  return context;
}

void ContextPool::giveBack(std::unique_ptr<ExecutionContext> context) {
  if (!isInForce(*context)) return;
  std::unique_ptr<ExecutionContext> earlier(recent_.exchange(context.release()));
  if (earlier == nullptr) return;
  // Destroyed without the lock where it is no longer in force.
  const std::lock_guard lock(mutex_);
  addIdle(earlier);
}

void ContextPool::beginSecondStage(std::unique_ptr<ExecutionContext> context) {
  Contexts before;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  choices_ = context->kernels().choices();
  before = beginVersion();
  context->setPoolVersion(version_.load());
  idle_.push_back(std::move(context));
}

bool ContextPool::isFirstStage(const ExecutionContext& context) const {
  const std::lock_guard lock(mutex_);
  return choices_ == nullptr && context.kernels().choices() == nullptr &&
         &context.plan() == &plans_.back()->plan;
}

void ContextPool::noteReplacement() {
  Contexts before;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  before = beginVersion();
  ++replacements_;
}

}  // namespace hearth::cpu
