// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "graph/model.h"

namespace hearth::graph {

// Gives tensors of rank 0, which TFLite has and NNAPI lacks, the shape [1] where no other shape
// changes: elementwise operations broadcast both in the same way, and PACK becomes CONCATENATION.
// kUnsupported names an operation that tells the two apart, or an input or output of the model,
// whose shape the client sees; the model is then unusable. The model is valid before and after.
Status liftRankZeroTensors(Model* model);

}  // namespace hearth::graph
