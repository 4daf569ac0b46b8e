// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/deadline.h"
#include "base/result.h"
#include "drivers/cpu/plan/execution_context.h"
#include "drivers/cpu/plan/kernel_choice.h"
#include "drivers/cpu/plan/kernel_factory.h"
#include "drivers/cpu/plan/kernel_tuner.h"
#include "drivers/cpu/plan/plan.h"

namespace hearth::cpu {

// Choices that select of each node the kernel that the first stage does not run.
std::shared_ptr<const KernelChoices> otherKernels(const Plan& plan);

// The two stages of a plan in use. In the first stage each node runs its first kernel on all
// threads, and executions are measured. When the fastest choice is known, its kernels are built in
// the background, and the second stage begins. No execution waits for that. Thread-safe.
class KernelStages {
 public:
  struct Handlers {
    // Called when the second stage begins. It gets the first context with these choices; all later
    // contexts are to be made with them, too.
    std::function<void(std::unique_ptr<ExecutionContext>, const MeasuredChoices&)> begin;
    // Called after `begin`, to keep the choices for later processes.
    std::function<void(const MeasuredChoices&)> keep;
  };

  // The handlers are called at most once each, on a thread of this object's own, or in run() where
  // no thread can be started. Plan, pool and what the handlers refer to outlive this object.
  // `memory` is that of the contexts.
  KernelStages(const Plan& plan, threads::ThreadPool* pool,
               std::shared_ptr<ActivationMemory> memory, Handlers handlers);
  // Stops building kernels in the background.
  ~KernelStages();
  KernelStages(const KernelStages&) = delete;
  KernelStages& operator=(const KernelStages&) = delete;

  // Runs a context of the first stage, all of whose kernels are built, as ExecutionContext::run().
  Status run(ExecutionContext& context, std::span<const ExecutionContext::Buffer> inputs,
             std::span<const ExecutionContext::Buffer> outputs, const base::Deadline& deadline);

 private:
  std::optional<KernelTuner::Trial> beginTrial();
  void endTrial(const KernelTuner::Trial& trial);
  void beginSecond();

  const Plan& plan_;
  threads::ThreadPool* const pool_;
  const std::shared_ptr<ActivationMemory> memory_;
  const Handlers handlers_;
  KernelTuner tuner_;
  const bool hasOthers_;

  std::atomic<unsigned> running_ = 0;
  std::atomic<uint64_t> started_ = 0;  // number of executions
  std::atomic<bool> isDecided_ = false;
  // Held by the execution that is measured, as long as it runs. Executions only try to lock it, so
  // that none waits for it in a child whose parent was measuring when it forked.
  std::mutex mutex_;
  std::shared_ptr<KernelFactory> others_;
  std::shared_ptr<KernelFactory> second_;
  MeasuredChoices measured_;
};

}  // namespace hearth::cpu
