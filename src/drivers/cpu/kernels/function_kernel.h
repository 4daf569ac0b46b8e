// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "drivers/cpu/kernels/kernel.h"

namespace hearth::cpu {

// The input of one run of a kernel. Pointers are valid during the run.
struct KernelRun {
  std::span<void* const> addresses;  // by value of the execution graph
  uint8_t* scratch = nullptr;        // of thread 0, 64-byte aligned
  size_t scratchStride = 0;          // bytes from one thread's scratch memory to the next
  threads::ThreadPool* pool = nullptr;

  template <typename T>
  T* at(ValueId value) const {
    return static_cast<T*>(addresses[value]);
  }
};

// Makes a kernel of one function, which is thread-safe and keeps no state between runs. It gets
// `scratchPerThread` bytes of scratch memory for each thread of the pool.
Result<std::unique_ptr<Kernel>> makeFunctionKernel(std::function<Status(const KernelRun&)> function,
                                                   size_t scratchPerThread = 0);

}  // namespace hearth::cpu
