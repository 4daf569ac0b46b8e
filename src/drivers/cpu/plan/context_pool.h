// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/cpu/plan/execution_context.h"
#include "drivers/cpu/plan/kernel_choice.h"
#include "drivers/cpu/plan/kernel_factory.h"
#include "drivers/cpu/plan/plan.h"

namespace hearth::cpu {

// The execution contexts of a prepared model. Each concurrent execution takes one; it is kept for
// the next execution unless the model's plan, the choice of its kernels, or its packed weights have
// changed meanwhile. Thread-safe.
//
// These changes are counted. A context carries the count of when it was made, so that it can be
// told without a lock whether it is as a new one would be.
class ContextPool {
 public:
  ContextPool() = default;
  ~ContextPool() { delete recent_.load(); }
  ContextPool(const ContextPool&) = delete;
  ContextPool& operator=(const ContextPool&) = delete;

  // A plan with the constants that its nodes refer to.
  struct Planned {
    Plan plan;
    std::vector<std::unique_ptr<uint8_t[]>> ownedConstants;
  };

  // Puts a plan in force, with its first context. Executions may go on with an earlier plan, which
  // lives as long as this.
  void setPlan(std::unique_ptr<Planned> planned, std::unique_ptr<ExecutionContext> first);
  // The plan in force. There is one.
  const Plan& plan() const;

  // A context that is idle, if possible one that is bound to these buffers; null when there is
  // none. Null, too, when a small plan runs with these and with other buffers in turn, as the two
  // sides of a state are: another context takes less time then than binding one to other buffers
  // each time.
  std::unique_ptr<ExecutionContext> takeIdle(
      std::span<const ExecutionContext::Buffer> inputs = {},
      std::span<const ExecutionContext::Buffer> outputs = {});
  // A new context of the plan in force, with the memory of its first one. Errors of building
  // kernels.
  Result<std::unique_ptr<ExecutionContext>> make(threads::ThreadPool* pool) const;
  // Whether a context is as a new one would be now.
  bool isInForce(const ExecutionContext& context) const {
    return context.poolVersion() == version_.load();
  }
  // Keeps the context for the next execution if it is in force, and else destroys it.
  void giveBack(std::unique_ptr<ExecutionContext> context);

  // Puts the choices of this context's kernels in force: the second stage (KernelStages).
  void beginSecondStage(std::unique_ptr<ExecutionContext> context);
  // Whether the context has the plan in force, and no choices are.
  bool isFirstStage(const ExecutionContext& context) const;

  // Call it when bytes of packed weights were replaced: kernels of contexts may have read the wrong
  // ones.
  void noteReplacement();
  // How often that was.
  uint64_t replacements() const { return replacements_.load(); }

 private:
  // The context that was given back last, if it is in force and bound to these buffers. Another one
  // is left in `other`.
  std::unique_ptr<ExecutionContext> takeRecent(std::span<const ExecutionContext::Buffer> inputs,
                                               std::span<const ExecutionContext::Buffer> outputs,
                                               std::unique_ptr<ExecutionContext>* other);
  // Puts a context among the idle ones if it is in force; else it is left.
  void addIdle(std::unique_ptr<ExecutionContext>& context);
  // Begins a new version, and returns the contexts of the last one, to be destroyed without the
  // lock.
  std::vector<std::unique_ptr<ExecutionContext>> beginVersion();

  // The context that was given back last; maybe one of an earlier version. An execution that has
  // the same buffers as the last one takes it without a lock. To lock twice, once to take it and
  // once to give it back, would take a tenth of the smallest models' time.
  std::atomic<ExecutionContext*> recent_{nullptr};
  std::atomic<uint64_t> version_ = 0;  // changes with mutex_ held

  mutable base::Mutex mutex_;
  std::vector<std::unique_ptr<Planned>> plans_;          // the last one is in force
  std::shared_ptr<const KernelChoices> choices_;         // null: each node runs its first kernel
  std::shared_ptr<ActivationMemory> memory_;             // of the contexts
  std::vector<std::unique_ptr<ExecutionContext>> idle_;  // in force; beside recent_
  std::atomic<uint64_t> replacements_ = 0;
};

}  // namespace hearth::cpu
