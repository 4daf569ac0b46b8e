// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/function_kernel.h"

#include <utility>

#include "threads/thread_pool.h"

namespace hearth::cpu {
namespace {

constexpr size_t kAlignment = 64;

class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(std::function<Status(const KernelRun&)> function, size_t scratchPerThread)
      : function_(std::move(function)) {
    run_.scratchStride = (scratchPerThread + kAlignment - 1) / kAlignment * kAlignment;
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return run_.scratchStride * (pool == nullptr ? 1 : pool->threadCount());
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    run_.addresses = addresses;
    run_.scratch = static_cast<uint8_t*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    run_.pool = pool;
    return function_(run_);
  }

 private:
  const std::function<Status(const KernelRun&)> function_;
  KernelRun run_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeFunctionKernel(std::function<Status(const KernelRun&)> function,
                                                   size_t scratchPerThread) {
  return std::make_unique<FunctionKernel>(std::move(function), scratchPerThread);
}

}  // namespace hearth::cpu
