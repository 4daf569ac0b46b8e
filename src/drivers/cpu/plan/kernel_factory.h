// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/plan/kernel_choice.h"
#include "drivers/cpu/plan/plan.h"

namespace hearth::threads {
class ThreadPool;
}

namespace hearth::cpu {

// Makes and shapes the kernels of one execution context: all at once, or ahead of their use while
// the context runs already. Thread-safe. A fork waits for the kernels in the making; in its child,
// those that are missing are made by who asks for them.
class KernelFactory {
 public:
  // Plan and pool outlive it; a null pool makes one kernel after the other. Null choices: the first
  // kernel of each node.
  KernelFactory(const Plan& plan, threads::ThreadPool* pool,
                std::shared_ptr<const KernelChoices> choices = nullptr);
  ~KernelFactory();
  KernelFactory(const KernelFactory&) = delete;
  KernelFactory& operator=(const KernelFactory&) = delete;

  // Makes all on the pool's threads. The first error; see refused().
  Status makeAll();

  // Makes them on `threads` threads, in the order of the plan, and starts the pool's. When all are
  // made, `completed` is called once, on one of those threads or by finish(), which returns after
  // it. Then those threads call `afterwards`, once, for what nobody should wait for. Where no
  // thread can be started, all of that is done at once.
  void makeAhead(unsigned threads, std::function<void()> completed,
                 std::function<void()> afterwards);

  // How the nodes run whose kernels these are.
  const std::shared_ptr<const KernelChoices>& choices() const { return choices_; }
  KernelChoice choice(size_t node) const {
    return choices_ == nullptr ? KernelChoice() : choiceOf(*choices_, node);
  }

  // The kernel of a node, made by the caller if nobody is at it. The error that making it gave:
  // kUnsupported when XNNPACK refuses the operation.
  Result<Kernel*> get(size_t node);

  // Makes what is left, and waits for what others make.
  void finish();

  // Ends what goes on ahead after the kernel that it is at. If all kernels are made, what is to
  // happen then has happened. Nobody else uses this object any more.
  void end();

  // Whether all are made, and `completed` has returned.
  bool isComplete() const { return isComplete_.load(std::memory_order_acquire); }

  // Scratch memory that the kernels made so far need, and that of one made kernel.
  uint64_t workspaceBytes() const { return workspaceBytes_.load(std::memory_order_acquire); }
  uint64_t workspaceBytes(size_t node) const { return made_[node].workspaceBytes; }

  // Of kernels made so far: operations (indices) that XNNPACK refuses.
  std::vector<uint32_t> refused() const;
  // Whether one of the kernels made so far could not be.
  bool hasFailed() const { return hasFailed_.load(std::memory_order_acquire); }

 private:
  enum State : int { kOpen, kClaimed, kMade };
  struct Made {
    std::unique_ptr<Kernel> kernel;
    uint64_t workspaceBytes = 0;
    std::optional<Error> error;
  };

  void make(size_t node) noexcept;
  Status makeKernel(size_t node);
  bool makeIfOpen(size_t node);
  void await(size_t node);
  bool allMade() const { return madeCount_.load(std::memory_order_acquire) == made_.size(); }
  void work();
  void startThreads();
  void endThreads();
  void forgetThreads();

  friend class RunningMakers;

  const Plan& plan_;
  threads::ThreadPool* const pool_;
  const std::shared_ptr<const KernelChoices> choices_;
  std::vector<Made> made_;
  std::vector<std::atomic<int>> states_;
  std::atomic<size_t> madeCount_ = 0;
  std::atomic<uint64_t> workspaceBytes_ = 0;
  std::atomic<bool> isComplete_ = false;
  std::atomic<bool> hasFailed_ = false;
  std::atomic<bool> isEnding_ = false;
  std::once_flag completedOnce_;
  std::once_flag afterwardsOnce_;
  std::function<void()> completed_;
  std::function<void()> afterwards_;
  unsigned threadCount_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace hearth::cpu
