// SPDX-License-Identifier: Apache-2.0
// Indices into several dimensions at once, for GATHER_ND and SCATTER_ND.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// Converts input `indices` of [..., depth] to numbers of slices of a tensor of shape `data`, whose
// first `depth` <= rank dimensions they index. kBadData for an index outside its dimension.
Result<std::vector<uint64_t>> readSliceNumbers(const OperationContext& context, size_t indices,
                                               const Dimensions& data);

}  // namespace hearth::ops
