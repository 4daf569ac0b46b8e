// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// The number of elements that TOPK_V2 takes of each row: its input 1, a scalar in NNAPI, a tensor
// of one element in TFLite. Not compared with the size of the rows. kBadData for any other tensor;
// needsRuntimeValue() while a tensor has no value yet.
Result<int32_t> parseTopkCount(const OperationContext& context);

}  // namespace hearth::ops
