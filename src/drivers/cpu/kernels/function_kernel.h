// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "drivers/cpu/kernels/kernel.h"

namespace hearth::cpu {

// What one run of a kernel works with.
struct KernelRun {
  std::span<void* const> addresses;  // by value of the plan
  uint8_t* scratch = nullptr;        // of thread 0, 64-byte aligned
  size_t scratchStride = 0;          // bytes from one thread's scratch memory to the next
  threads::ThreadPool* pool = nullptr;

  template <typename T>
  T* at(ValueId value) const {
    return static_cast<T*>(addresses[value]);
  }
};

// A kernel that is one function: thread-safe, it keeps nothing between runs. It gets
// `scratchPerThread` bytes for each thread of the pool.
Result<std::unique_ptr<Kernel>> makeFunctionKernel(std::function<Status(const KernelRun&)> function,
                                                   size_t scratchPerThread = 0);

}  // namespace hearth::cpu
