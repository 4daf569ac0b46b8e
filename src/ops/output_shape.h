// SPDX-License-Identifier: Apache-2.0
// Steps shared by operations whose output dimensions are computed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// A computed size as a dimension; kBadData outside [0, 2^32 - 1].
Result<uint32_t> toDimension(const OperationContext& context, int64_t size);

// The integers of an input as the dimensions of an output. Errors: those of intVector() and
// toDimension().
Result<Dimensions> dimensionsArgument(const OperationContext& context, size_t input);

// NNAPI has no tensors of rank 0: if an operation removes every dimension, its output is [1],
// unless the model declares an output of rank 0, as TFLite does.
Dimensions keepRankAboveZero(const OperationContext& context, Dimensions dimensions);

}  // namespace hearth::ops
