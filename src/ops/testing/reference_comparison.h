// SPDX-License-Identifier: Apache-2.0
// For tests: compares a kernel with the reference kernel of the same operation.
#pragma once

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// `context` belongs to an operation whose kernel returned `status`. Runs the reference kernel on
// the same inputs and on outputs of its own, of exact size; passes if the operation has none.
// kOpFailed if it returns another code or other outputs: quantised numbers may differ by a step,
// real ones by the rounding errors of long sums in their type, all others not at all.
Status compareWithReference(const OperationContext& context, const Status& status);

}  // namespace hearth::ops
