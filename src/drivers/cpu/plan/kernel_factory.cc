// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/kernel_factory.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/caught.h"
#include "base/fork_gate.h"
#include "base/helper_thread.h"
#include "base/immortal.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/trace.h"
#include "drivers/cpu/weights/packed_weights.h"
#include "drivers/cpu/weights/released_pages.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {

// The factories that build ahead. A forked child lacks their threads. A thread that builds a kernel
// is inside the ForkGate, so that no kernel is half built in the child.
class RunningMakers {
 public:
  static RunningMakers& instance() {
    static constinit base::Immortal<RunningMakers> running;
    return running.get([] {
      base::ForkGate::atFork({.afterInChild = [] {
        instance().forgetThreads();
      }});
      return RunningMakers();
    });
  }

  // False when no thread can be started.
  bool start(KernelFactory* maker) {
    const std::lock_guard lock(mutex_);
    makers_.push_back(maker);
    maker->startThreads();
    return !maker->threads_.empty();
  }

  void end(KernelFactory* maker) {
    {
      const std::lock_guard lock(mutex_);
      std::erase(makers_, maker);
    }
    maker->endThreads();
  }

 private:
  void forgetThreads() {
    for (KernelFactory* maker : makers_) maker->forgetThreads();
  }

  base::Mutex mutex_;
  std::vector<KernelFactory*> makers_;
};

KernelFactory::KernelFactory(const Plan& plan, threads::ThreadPool* pool,
                             std::shared_ptr<const KernelChoices> choices)
    : plan_(plan),
      pool_(pool),
      choices_(std::move(choices)),
      made_(plan.nodes.size()),
      states_(plan.nodes.size()) {}

KernelFactory::~KernelFactory() {
  end();
}

void KernelFactory::end() {
  if (completed_ == nullptr) return;
  RunningMakers::instance().end(this);
  if (allMade()) finish();
}

// Never throws: threads that wait for the kernel get every failure as its error.
void KernelFactory::make(size_t node) noexcept {
  Made& made = made_[node];
  const uint64_t packedBefore = PackedWeights::packedByThisThread();
  if (Status status = base::caught([&] { return makeKernel(node); }); !status)
    made.error.emplace(std::move(status.error()));
  if (PackedWeights::packedByThisThread() != packedBefore)
    for (const std::span<const uint8_t>& source : plan_.nodes[node].packedSources)
      releasePages(source);
  if (made.error) hasFailed_.store(true, std::memory_order_release);
  if (made.error && made.error->code() == ErrorCode::kUnsupported)
    static_cast<void>(base::caught([&] {
      base::logInfo("Operation {} ({}) goes to its reference kernel: {}",
                    plan_.nodes[node].operation, plan_.nodes[node].name, made.error->toString());
    }));
  // Releases the kernel, its error and hasFailed_. Who sees the whole count has acquired all of
  // them.
  states_[node].store(kMade, std::memory_order_release);
  madeCount_.fetch_add(1, std::memory_order_acq_rel);
  states_[node].notify_all();
}

Status KernelFactory::makeKernel(size_t node) {
  const KernelChoice::Which which = choice(node).which;
  Result<std::unique_ptr<Kernel>> kernel = nullptr;
  if (which == KernelChoice::Which::kFirst) kernel = plan_.nodes[node].create();
  if (which == KernelChoice::Which::kOther) kernel = plan_.nodes[node].createOther();
  if (!kernel) return std::unexpected(std::move(kernel.error()));
  if (*kernel == nullptr) return {};
  // reshape() of convolutions fills tables, of megabytes for large images.
  HEARTH_ASSIGN(const size_t bytes, (*kernel)->reshape(pool_));
  Made& made = made_[node];
  made.kernel = std::move(*kernel);
  made.workspaceBytes = bytes;
  uint64_t most = workspaceBytes_.load(std::memory_order_relaxed);
  while (most < bytes && !workspaceBytes_.compare_exchange_weak(most, bytes)) {
  }
  return {};
}

Status KernelFactory::makeAll() {
  const base::TraceSpan span("start", "make kernels");
  const auto makeOne = [this, isInside = base::ForkGate::isInside()](size_t node) {
    const base::ForkGate::OnBehalf behalf(isInside);
    const base::ForkGate::Inside inside;
    make(node);
  };
  if (pool_ != nullptr) {
    pool_->parallelFor(made_.size(), makeOne);
  } else {
    for (size_t node = 0; node < made_.size(); ++node) makeOne(node);
  }
  isComplete_.store(true, std::memory_order_release);
  for (const Made& made : made_)
    if (made.error) return std::unexpected(*made.error);
  return {};
}

void KernelFactory::makeAhead(unsigned threads, std::function<void()> completed,
                              std::function<void()> afterwards) {
  threadCount_ = threads;
  completed_ = std::move(completed);
  afterwards_ = std::move(afterwards);
  if (!RunningMakers::instance().start(this)) work();
}

void KernelFactory::startThreads() {
  isEnding_ = false;
  // Fewer threads than wanted only take longer.
  if (!base::caught([this] { threads_.reserve(threadCount_); })) return;
  for (unsigned i = 0; i < threadCount_; ++i) {
    std::thread thread = base::startHelperThread("hearth-kernels", [this] { work(); });
    if (!thread.joinable()) return;
    threads_.push_back(std::move(thread));
  }
}

void KernelFactory::endThreads() {
  isEnding_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

// For a forked child, which cannot destroy the handles of threads that it does not have.
void KernelFactory::forgetThreads() {
  std::construct_at(&threads_);
}

// False when another thread is building the kernel or has built it.
bool KernelFactory::makeIfOpen(size_t node) {
  if (states_[node].load(std::memory_order_acquire) != kOpen) return false;
  const base::ForkGate::Inside inside;
  int expected = kOpen;
  if (!states_[node].compare_exchange_strong(expected, kClaimed, std::memory_order_acq_rel))
    return false;
  make(node);
  return true;
}

void KernelFactory::await(size_t node) {
  for (int state = states_[node].load(std::memory_order_acquire); state != kMade;
       state = states_[node].load(std::memory_order_acquire))
    states_[node].wait(state, std::memory_order_acquire);
}

Result<Kernel*> KernelFactory::get(size_t node) {
  if (!makeIfOpen(node)) await(node);
  const Made& made = made_[node];
  if (made.error) return std::unexpected(*made.error);
  return made.kernel.get();
}

void KernelFactory::finish() {
  if (isComplete()) return;
  for (size_t node = 0; node < made_.size(); ++node)
    if (!makeIfOpen(node)) await(node);
  // Outside the ForkGate, because `completed_` may wait for other threads. A child that was forked
  // during the call calls it again: call_once is made of pthread_once, which knows of forks.
  std::call_once(completedOnce_, [this] {
    if (completed_ != nullptr) base::logged("What follows the making of kernels", completed_);
    isComplete_.store(true, std::memory_order_release);
  });
}

void KernelFactory::work() {
  if (pool_ != nullptr) pool_->start();
  {
    const base::TraceSpan span("start", "make kernels ahead");
    for (size_t node = 0; node < made_.size() && !isEnding_; ++node) makeIfOpen(node);
  }
  // A thread that has to end does not wait for kernels that others are building; the thread that
  // builds the last one completes the work.
  if (isEnding_ && !allMade()) return;
  finish();
  std::call_once(afterwardsOnce_,
                 [this] { base::logged("What follows the making of kernels", afterwards_); });
}

std::vector<uint32_t> KernelFactory::refused() const {
  std::vector<uint32_t> operations;
  for (size_t node = 0; node < made_.size(); ++node)
    if (states_[node].load(std::memory_order_acquire) == kMade && made_[node].error &&
        made_[node].error->code() == ErrorCode::kUnsupported)
      operations.push_back(plan_.nodes[node].operation);
  return operations;
}

}  // namespace hearth::cpu
