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

// Of each node the kernel that the first stage does not run.
std::shared_ptr<const KernelChoices> otherKernels(const Plan& plan);

// The two stages of a plan in use. In the first one each node runs its first kernel on all threads.
// Executions are measured meanwhile; when it is known what is fastest here, kernels for that are
// made in the background, and the second stage begins. No execution waits for any of it.
// Thread-safe.
class KernelStages {
 public:
  struct Handlers {
    // The second stage begins: contexts are made with these choices from now on, the first of them
    // being this one.
    std::function<void(std::unique_ptr<ExecutionContext>, const MeasuredChoices&)> begin;
    // For what is to outlive the process. After `begin`.
    std::function<void(const MeasuredChoices&)> keep;
  };

  // The handlers are called once each, on a thread of this object's own. Plan, pool and what the
  // handlers refer to outlive it.
  KernelStages(const Plan& plan, threads::ThreadPool* pool, Handlers handlers);
  // Ends what goes on in the background.
  ~KernelStages();
  KernelStages(const KernelStages&) = delete;
  KernelStages& operator=(const KernelStages&) = delete;

  // Runs a context of the first stage whose kernels are all made, as ExecutionContext::run() does.
  Status run(ExecutionContext& context, std::span<const ExecutionContext::Buffer> inputs,
             std::span<const ExecutionContext::Buffer> outputs, const base::Deadline& deadline);

 private:
  std::optional<KernelTuner::Trial> beginTrial();
  void endTrial(const KernelTuner::Trial& trial);
  void beginSecond();

  const Plan& plan_;
  threads::ThreadPool* const pool_;
  const Handlers handlers_;
  KernelTuner tuner_;
  const bool hasOthers_;

  std::atomic<unsigned> running_ = 0;
  std::atomic<uint64_t> started_ = 0;  // executions
  std::atomic<bool> isDecided_ = false;
  // Of those who measure: one at a time, for the time of an execution. Only tried, so that in a
  // child of a process that measures nobody waits for it.
  std::mutex mutex_;
  std::shared_ptr<KernelFactory> others_;
  std::shared_ptr<KernelFactory> second_;
  MeasuredChoices measured_;
};

}  // namespace hearth::cpu
