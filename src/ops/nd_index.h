// SPDX-License-Identifier: Apache-2.0
// Indices into several dimensions at once: GATHER_ND and SCATTER_ND.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// Input `indices` of [..., depth] as numbers of slices of a tensor of shape `data` whose first
// `depth` <= rank dimensions they walk. kBadData for an index outside its dimension.
Result<std::vector<uint64_t>> readSliceNumbers(const OperationContext& context, size_t indices,
                                               const Dimensions& data);

}  // namespace hearth::ops
