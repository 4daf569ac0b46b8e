// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "graph/model.h"

namespace hearth::ops {

// Whether NNAPI allows this form of a valid operation. Kernels also take forms that only .tflite
// files have; NNAPI's documentation of the operation says which of them must be refused. Fails with
// kBadData.
Status checkNnapiLimits(const graph::Subgraph& subgraph, const graph::Operation& operation);

}  // namespace hearth::ops
