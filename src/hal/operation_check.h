// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "hal/device.h"

namespace hearth::hal {

// For each operation of the main subgraph, whether the kernels of src/ops run it, subgraphs that it
// refers to included; the kernel is then "reference". The model passed graph::validate().
std::vector<OperationSupport> checkOperations(const graph::Model& model);

}  // namespace hearth::hal
