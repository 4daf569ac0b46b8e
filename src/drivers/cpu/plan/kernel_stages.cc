// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/kernel_stages.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/fork_gate.h"
#include "base/log.h"
#include "base/trace.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {
namespace {

using Clock = std::chrono::steady_clock;

KernelTuner::Time nanosecondsSince(Clock::time_point begin) {
  return static_cast<KernelTuner::Time>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

}  // namespace

std::shared_ptr<const KernelChoices> otherKernels(const Plan& plan) {
  KernelChoices choices;
  for (const Node& node : plan.nodes)
    choices.push_back(
        {node.createOther != nullptr ? KernelChoice::Which::kOther : KernelChoice::Which::kNone});
  return std::make_shared<const KernelChoices>(std::move(choices));
}

KernelStages::KernelStages(const Plan& plan, threads::ThreadPool* pool,
                           std::shared_ptr<ActivationMemory> memory, Handlers handlers)
    : plan_(plan),
      pool_(pool),
      memory_(std::move(memory)),
      handlers_(std::move(handlers)),
      tuner_(plan, pool->threadCount()),
      hasOthers_(std::ranges::any_of(
          plan.nodes, [](const Node& node) { return node.createOther != nullptr; })) {}

KernelStages::~KernelStages() {
  if (others_ != nullptr) others_->end();
  if (second_ != nullptr) second_->end();
}

Status KernelStages::run(ExecutionContext& context,
                         std::span<const ExecutionContext::Buffer> inputs,
                         std::span<const ExecutionContext::Buffer> outputs,
                         const base::Deadline& deadline) {
  struct Running {
    std::atomic<unsigned>& count;
    const bool isAlone = count.fetch_add(1) == 0;
    ~Running() { count.fetch_sub(1); }
  };
  const Running running{running_};
  const uint64_t number = started_.fetch_add(1) + 1;
  std::unique_lock measuring(mutex_, std::defer_lock);
  std::optional<KernelTuner::Trial> trial;
  if (running.isAlone && !isDecided_.load(std::memory_order_acquire) && measuring.try_lock())
    trial = beginTrial();
  if (!trial) {
    const bool isCounted = measuring.owns_lock();
    if (isCounted) measuring.unlock();
    const Clock::time_point begin = Clock::now();
    Status status = context.run(inputs, outputs, pool_, deadline);
    if (isCounted) tuner_.endUnmeasured(nanosecondsSince(begin));
    return status;
  }
  const ExecutionContext::Measurement measurement{trial->choices, others_.get(), trial->times};
  Status status = context.run(inputs, outputs, pool_, deadline, &measurement);
  // An execution that began meanwhile competed with this one for threads.
  const bool isDisturbed = started_.load() != number;
  if (status && !isDisturbed) endTrial(*trial);
  return status;
}

std::optional<KernelTuner::Trial> KernelStages::beginTrial() {
  using Others = KernelTuner::Others;
  Others others = Others::kRefused;
  if (hasOthers_ && others_ != nullptr)
    others = !others_->isComplete() ? Others::kInTheMaking
             : others_->hasFailed() ? Others::kRefused
                                    : Others::kThere;
  if (hasOthers_ && others_ == nullptr) others = Others::kInTheMaking;
  std::optional<KernelTuner::Trial> trial = tuner_.begin(others);
  if (hasOthers_ && others_ == nullptr && tuner_.isMeasuring()) {
    auto others = std::make_shared<KernelFactory>(plan_, pool_, otherKernels(plan_));
    others->makeAhead(1, [] {}, [] {});
    // A forked child finds either the whole pointer or none.
    const base::ForkGate::Inside inside;
    others_ = std::move(others);
  }
  if (!trial && tuner_.result()) beginSecond();
  return trial;
}

void KernelStages::endTrial(const KernelTuner::Trial& trial) {
  tuner_.end(trial);
  if (tuner_.result()) beginSecond();
}

void KernelStages::beginSecond() {
  measured_ = *tuner_.result();
  isDecided_.store(true, std::memory_order_release);
  std::shared_ptr<KernelFactory> others;
  {
    const base::ForkGate::Inside inside;
    others.swap(others_);
  }
  if (others != nullptr) others->end();
  others.reset();
  const base::TraceSpan span("tuning", "choose kernels");
  for (size_t node = 0; node < plan_.nodes.size(); ++node) {
    const KernelChoice choice = measured_.choices[node];
    if (choice != KernelChoice())
      base::logInfo("Operation {} ({}) is faster with its {} kernel on {}.",
                    plan_.nodes[node].operation, plan_.nodes[node].name,
                    choice.which == KernelChoice::Which::kOther ? "other" : "first",
                    choice.isSerial ? "one thread" : "all threads");
  }
  auto second = std::make_shared<KernelFactory>(
      plan_, pool_, std::make_shared<const KernelChoices>(measured_.choices));
  {
    const base::ForkGate::Inside inside;
    second_ = std::move(second);
  }
  second_->makeAhead(
      1,
      [this] {
        if (second_->hasFailed()) return;
        auto context = ExecutionContext::create(plan_, second_, memory_);
        if (!context) return base::logInfo("No second stage: {}", context.error().toString());
        handlers_.begin(std::move(*context), measured_);
      },
      [this] {
        if (!second_->hasFailed()) handlers_.keep(measured_);
      });
}

}  // namespace hearth::cpu
