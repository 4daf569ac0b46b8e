// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "graph/model.h"

namespace hearth::delegate {

// Sets the dimensions of everything that the main subgraph computes, from those of its inputs,
// which are all known. What it computes from shapes alone becomes constant, and the operations that
// did so are removed. kIncomplete when a shape depends on values that are known only at run time;
// kBadData when the model states another one. The model has passed graph::validate() and
// ops::validateOperations().
Status inferShapes(graph::Model* model);

}  // namespace hearth::delegate
