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

void ContextPool::setPlan(std::unique_ptr<Planned> planned,
                          std::unique_ptr<ExecutionContext> first) {
  Contexts before;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  choices_ = first->kernels().choices();
  memory_ = first->memory();
  plans_.push_back(std::move(planned));
  before.swap(idle_);
  idle_.push_back(std::move(first));
}

const Plan& ContextPool::plan() const {
  const std::lock_guard lock(mutex_);
  return plans_.back()->plan;
}

std::unique_ptr<ExecutionContext> ContextPool::takeIdle(
    std::span<const ExecutionContext::Buffer> inputs,
    std::span<const ExecutionContext::Buffer> outputs) {
  const std::lock_guard lock(mutex_);
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
  {
    const std::lock_guard lock(mutex_);
    plan = &plans_.back()->plan;
    choices = choices_;
    memory = memory_;
  }
  auto kernels = std::make_shared<KernelFactory>(*plan, pool, std::move(choices));
  HEARTH_TRY(kernels->makeAll());
  return ExecutionContext::create(*plan, std::move(kernels), std::move(memory));
}

bool ContextPool::isInForceLocked(const ExecutionContext& context, uint64_t replaced) const {
  return &context.plan() == &plans_.back()->plan && context.kernels().choices() == choices_ &&
         replacements_ == replaced;
}

bool ContextPool::isInForce(const ExecutionContext& context, uint64_t replaced) const {
  const std::lock_guard lock(mutex_);
  return isInForceLocked(context, replaced);
}

void ContextPool::giveBack(std::unique_ptr<ExecutionContext> context, uint64_t replaced) {
  const std::lock_guard lock(mutex_);
  if (isInForceLocked(*context, replaced)) idle_.push_back(std::move(context));
}

void ContextPool::beginSecondStage(std::unique_ptr<ExecutionContext> context) {
  Contexts before;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  choices_ = context->kernels().choices();
  before.swap(idle_);
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
  before.swap(idle_);
  ++replacements_;
}

}  // namespace hearth::cpu
