// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "hal/device.h"

namespace hearth::hal {

// Computes on a thread of its own once fences are readable: the fenced form of an execution for
// drivers whose device cannot wait for them itself. Used by one thread at a time, as the execution
// is. The fence that it gives is the end of a pipe, so that it becomes readable also when the
// process that computes ends.
class FencedThread {
 public:
  using Compute = std::function<ExecutionResult(const base::Deadline&)>;

  FencedThread() = default;
  ~FencedThread() { stop(); }
  FencedThread(const FencedThread&) = delete;
  FencedThread& operator=(const FencedThread&) = delete;

  // As Execution::startFenced(). `compute` is called once at most, on the thread, which counts what
  // it allocates where the caller's thread does (memory::BudgetScope); not if a fence reports an
  // error, which is kOpFailed, or the deadline passes before. kBadState when one is started
  // already, kIo or kResourceExhaustedTransient when there is no descriptor or thread left.
  Result<base::Descriptor> start(std::vector<base::Descriptor> fences,
                                 const base::Deadline& deadline, Compute compute);
  // As Execution::finishFenced().
  ExecutionResult finish();
  // Gives up the wait for fences, and waits for a computation that has begun: for the destructor of
  // an execution, before it destroys what it computes with.
  void stop();

 private:
  std::thread thread_;
  base::Descriptor cancel_;
  base::Descriptor reader_;  // of the pipe
  ExecutionResult result_;   // of thread_, when it has ended
};

}  // namespace hearth::hal
