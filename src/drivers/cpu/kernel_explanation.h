// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "graph/model.h"
#include "hal/device.h"

namespace hearth::cpu {

// Sets OperationSupport::kernel of all operations of the main subgraph of a model that passed
// graph::validate() and that the device supports: "none" where the result is a constant. Unknown
// dimensions stand for 1, also in the parts of a model that is divided (CutModel), since which
// kernel runs rarely depends on them.
void explainKernels(const graph::Model& model, std::vector<hal::OperationSupport>* support);

}  // namespace hearth::cpu
