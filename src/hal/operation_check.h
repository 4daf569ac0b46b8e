// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "hal/device.h"

namespace hearth::hal {

// Whether the kernels of src/ops run each operation of the main subgraph, with the subgraphs that
// it refers to; the kernel is then "reference". The model has passed graph::validate().
std::vector<OperationSupport> checkOperations(const graph::Model& model);

}  // namespace hearth::hal
