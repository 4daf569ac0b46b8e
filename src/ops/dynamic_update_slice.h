// SPDX-License-Identifier: Apache-2.0
// DYNAMIC_UPDATE_SLICE of the extension: its arguments, parsed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// Where the update begins in each dimension of the data. As in TFLite, a begin that lies too far
// out is moved until the update fits. The data are input 0, the update is input 1, the indices are
// input 2. Input 3 may say that the update is a row: it has a first dimension of 1 and the others
// of the data, and a begin that would have to be moved is an error. Shapes must be known;
// needsRuntimeValue() while the indices have no value. kBadData when the ranks differ, when the
// update is larger than the data or no row, and for a row outside.
Result<std::vector<int64_t>> parseUpdateBegin(const OperationContext& context);

}  // namespace hearth::ops
