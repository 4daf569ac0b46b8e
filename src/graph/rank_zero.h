// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "graph/model.h"

namespace hearth::graph {

// Gives tensors of rank 0, which TFLite has and NNAPI has not, the shape [1], where that changes no
// other shape: elementwise operations spread both in the same way, PACK becomes CONCATENATION.
// kUnsupported names an operation that tells the two apart, or an input or output of the model,
// which is the client's; the model is then not to be used. The model is valid before and after.
Status liftRankZeroTensors(Model* model);

}  // namespace hearth::graph
