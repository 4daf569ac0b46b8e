// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/context_pool.h"

#include <mutex>
#include <utility>

namespace hearth::cpu {

using Contexts = std::vector<std::unique_ptr<ExecutionContext>>;

void ContextPool::setPlan(std::unique_ptr<Planned> planned,
                          std::unique_ptr<ExecutionContext> first) {
  Contexts before;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  choices_ = first->kernels().choices();
  plans_.push_back(std::move(planned));
  before.swap(idle_);
  idle_.push_back(std::move(first));
}

const Plan& ContextPool::plan() const {
  const std::lock_guard lock(mutex_);
  return plans_.back()->plan;
}

std::unique_ptr<ExecutionContext> ContextPool::takeIdle() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return nullptr;
  std::unique_ptr<ExecutionContext> context = std::move(idle_.back());
  idle_.pop_back();
  return context;
}

Result<std::unique_ptr<ExecutionContext>> ContextPool::make(threads::ThreadPool* pool) const {
  const Plan* plan = nullptr;
  std::shared_ptr<const KernelChoices> choices;
  {
    const std::lock_guard lock(mutex_);
    plan = &plans_.back()->plan;
    choices = choices_;
  }
  auto kernels = std::make_shared<KernelFactory>(*plan, pool, std::move(choices));
  HEARTH_TRY(kernels->makeAll());
  return ExecutionContext::create(*plan, std::move(kernels));
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
