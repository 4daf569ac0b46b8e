// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "hal/device.h"
#include "hal/request_check.h"

namespace hearth::cpu {

class CutModel;

// An execution of the model with these arguments, which are used in place where the parts of the
// model allow it. Other tensors between the parts lie in memory that the execution keeps for its
// next computation. `bound` is `request`, which omits no input.
std::unique_ptr<hal::Execution> cutExecution(std::shared_ptr<CutModel> model, hal::Request request,
                                             hal::BoundRequest bound);

}  // namespace hearth::cpu
