// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "graph/model.h"

namespace hearth::ops {

// The model in which constants that an IF passes to its branches are constants of the branches, so
// that their layers have constant weights; `model` itself where there is nothing to change.
// Exporters of PyTorch and ONNX pass all weights of a branch as arguments. `model` has passed
// graph::validate() and validateOperations(), and so has the result, which shares its pools.
// Branches that several operations use stay as they are.
std::shared_ptr<const graph::Model> withBranchConstants(std::shared_ptr<const graph::Model> model);

}  // namespace hearth::ops
