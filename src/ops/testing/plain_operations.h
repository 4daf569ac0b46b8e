// SPDX-License-Identifier: Apache-2.0
// For tests: a judge of the kernels that shares no code with them. Each operation is the formula of
// its documentation, one element at a time, in double: no vectors, no tables, no threads, no
// shortcuts.
#pragma once

#include "ops/operation.h"

namespace hearth::ops::plain {

// Computes output 0 of an operation that passed validate() and prepare(), whose inputs and output
// have data. False for an operation that has no formula here.
bool compute(const OperationContext& context);

// The parts of compute().
bool computeMove(const OperationContext& context);  // elements that change their place
bool computeElements(
    const OperationContext& context);                // each element for itself, or of two tensors
bool computeRows(const OperationContext& context);   // reductions and normalisations
bool computeLayer(const OperationContext& context);  // sums of products, pools, resizing, LSTM

}  // namespace hearth::ops::plain
