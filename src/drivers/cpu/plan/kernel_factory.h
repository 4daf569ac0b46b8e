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

// Builds the kernels of one execution context, for the shapes of its plan: all at once, or ahead
// of their use while the context runs already. Thread-safe. A fork waits for kernels that are being
// built; in the child, get() and finish() build those that are missing.
class KernelFactory {
 public:
  // Plan and pool outlive this object. With a null pool makeAll() builds one kernel after the
  // other; with null choices each node gets its first kernel.
  KernelFactory(const Plan& plan, threads::ThreadPool* pool,
                std::shared_ptr<const KernelChoices> choices = nullptr);
  ~KernelFactory();
  KernelFactory(const KernelFactory&) = delete;
  KernelFactory& operator=(const KernelFactory&) = delete;

  // Builds all kernels on the pool's threads. Returns the first error, after trying all; see
  // refused().
  Status makeAll();

  // Builds the kernels on `threads` new threads, in the order of the plan, and starts the threads
  // of the pool. When all are built, `completed` is called once, on one of the new threads or in
  // finish(), which returns after it. Then one of the new threads calls `afterwards`, once, for
  // work that no caller should wait for. Where no thread can be started, the calling thread does
  // all of it before the call returns.
  void makeAhead(unsigned threads, std::function<void()> completed,
                 std::function<void()> afterwards);

  // How each node runs with these kernels; null: its first kernel on all threads.
  const std::shared_ptr<const KernelChoices>& choices() const { return choices_; }
  KernelChoice choice(size_t node) const {
    return choices_ == nullptr ? KernelChoice() : choiceOf(*choices_, node);
  }

  // The kernel of a node. Builds it if no thread has begun to, else waits for that thread. Error:
  // that of building it; kUnsupported when XNNPACK refuses the operation.
  Result<Kernel*> get(size_t node);

  // Builds the remaining kernels, and waits for those that other threads are building.
  void finish();

  // Ends building ahead: each thread stops after its present kernel. If all kernels are built then,
  // `completed` has returned. No other thread may use this object any more.
  void end();

  // Whether all kernels are built and `completed` has returned.
  bool isComplete() const { return isComplete_.load(std::memory_order_acquire); }

  // Bytes of scratch memory that the kernels built so far need, and those of one built kernel.
  uint64_t workspaceBytes() const { return workspaceBytes_.load(std::memory_order_acquire); }
  uint64_t workspaceBytes(size_t node) const { return made_[node].workspaceBytes; }

  // Indices of the operations that XNNPACK refuses, as far as their kernels have been tried.
  std::vector<uint32_t> refused() const;
  // Whether building a kernel has failed so far.
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
