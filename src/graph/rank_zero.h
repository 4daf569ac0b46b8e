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

// Whether the operation computes the same elements for a tensor of rank 0 and for one of the shape
// [1], so that a constant of rank 0 may get that shape where another input has a rank.
bool ignoresRankOfOneElement(OperationType type);

}  // namespace hearth::graph
