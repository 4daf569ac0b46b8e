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

// NNAPI has no tensor of rank 0: an operation that removes every dimension gives [1], except where
// the model declares the output as TFLite's rank 0.
Dimensions keepRankAboveZero(const OperationContext& context, Dimensions dimensions);

}  // namespace hearth::ops
