// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// The model passed graph::validate() and ops::validateOperations(). `pool` may be null; `reason`
// goes into the start report. Errors as ops::Interpreter::create().
Result<std::shared_ptr<InterpretedModel>> prepareInterpreted(
    std::shared_ptr<const graph::Model> model, const PrepareOptions& options,
    std::shared_ptr<threads::ThreadPool> pool, std::string reason);

}  // namespace hearth::hal
