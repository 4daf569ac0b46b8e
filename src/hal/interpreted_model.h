// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "hal/device.h"
#include "threads/thread_pool.h"

namespace hearth::hal {

// A prepared model that runs operation by operation on the reference kernels, for any driver.
class InterpretedModel : public PreparedModel {
 public:
  // StartReport::cacheProblem; to be set before anybody else has the model.
  virtual void setCacheProblem(std::string problem) = 0;
};

// Memory of constants that may be lost while a model is in use, since it is a file that others may
// truncate or damage. Thread-safe.
class LosableMemory {
 public:
  virtual ~LosableMemory() = default;
  // How many times right bytes were put in place of lost ones.
  virtual uint64_t replacements() const = 0;
  // Does so for all that was lost so far; cheap when nothing was. Error: it stays lost.
  virtual Status replaceLost() = 0;
};

// The model passed graph::validate() and ops::validateOperations(). `pool` may be null; `reason`
// goes into the start report. `memory`, which may be null, is asked after each execution: one that
// may have read what was lost is computed again, or fails. Errors as ops::Interpreter::create(),
// and that of `memory`.
Result<std::shared_ptr<InterpretedModel>> prepareInterpreted(
    std::shared_ptr<const graph::Model> model, const PrepareOptions& options,
    std::shared_ptr<threads::ThreadPool> pool, std::string reason,
    std::shared_ptr<LosableMemory> memory = nullptr);

}  // namespace hearth::hal
