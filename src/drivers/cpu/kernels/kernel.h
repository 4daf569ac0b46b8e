// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"

namespace hearth::threads {
class ThreadPool;
}

namespace hearth::cpu {

// Index of a value (a tensor's memory) in an execution graph.
using ValueId = uint32_t;

// One step of an execution graph, built for one execution context. Used by one thread at a time, in
// this order: reshape() once, setup() whenever an address changed, run() for each execution. A null
// pool stands for the calling thread alone.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Prepares for the shapes of the graph; returns the bytes of scratch memory that run() needs.
  virtual Result<size_t> reshape(threads::ThreadPool* pool) = 0;

  // Takes the addresses of all values of the graph and 64-byte aligned scratch memory, which stay
  // valid until the next setup().
  virtual Status setup(std::span<void* const> addresses, void* workspace) = 0;

  virtual Status run(threads::ThreadPool* pool) = 0;
};

}  // namespace hearth::cpu
