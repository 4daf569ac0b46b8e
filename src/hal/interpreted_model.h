// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "hal/device.h"
#include "ops/interpreter.h"
#include "threads/thread_pool.h"

namespace hearth::hal {

// A prepared model that runs one operation after the other on the kernels of src/ops. Any driver
// may use it.
class InterpretedModel : public PreparedModel {
 public:
  // Sets StartReport::cacheProblem; to be called before anybody else has the model.
  virtual void setCacheProblem(std::string problem) = 0;
};

// Whether a driver that could not plan a model, with this error, should have it interpreted: shapes
// or branches are known only at run time (kUnsupported), or shapes or values contradict each other
// although the model is valid (kBadData), which fails when it runs, as on any device.
inline bool isForInterpreter(const Error& error) {
  return error.code() == ErrorCode::kUnsupported || error.code() == ErrorCode::kBadData;
}

// Memory of constants that may be lost while a model is in use, since it is a file that others may
// truncate or damage. Thread-safe.
class LosableMemory {
 public:
  virtual ~LosableMemory() = default;
  // How often lost bytes were replaced by the right ones.
  virtual uint64_t replacements() const = 0;
  // Replaces all bytes lost so far; cheap when there are none. After an error they stay lost.
  virtual Status replaceLost() = 0;
};

// Prepares a model that has passed graph::validate() and ops::validateOperations(). `pool` may be
// null; `reason` goes into the start report. `memory`, which may be null, is asked after each
// execution: an execution that may have read lost bytes is computed again, or fails. `kernels` says
// which ones compute. Errors as ops::Interpreter::create() and those of `memory`.
Result<std::shared_ptr<InterpretedModel>> prepareInterpreted(
    std::shared_ptr<const graph::Model> model, const PrepareOptions& options,
    std::shared_ptr<threads::ThreadPool> pool, std::string reason,
    std::shared_ptr<LosableMemory> memory = nullptr,
    ops::KernelSet kernels = ops::KernelSet::kFast);

}  // namespace hearth::hal
