// SPDX-License-Identifier: Apache-2.0
// For tests: compares a kernel with the reference kernel of the same operation.
#pragma once

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// `context` is of an operation whose kernel ended with `status`. Runs the reference kernel on the
// same inputs and on outputs of its own, of exact size; an operation without one passes.
// kOpFailed when it ends with another code, or with other outputs: quantised numbers may differ by
// a step, real ones by the roundings of long sums in their type, all others not at all.
Status compareWithReference(const OperationContext& context, const Status& status);

}  // namespace hearth::ops
