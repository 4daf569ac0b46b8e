// SPDX-License-Identifier: Apache-2.0
// DYNAMIC_UPDATE_SLICE of the extension: its arguments, parsed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// Where the update begins in the data, for each dimension: moved so far that it lies inside, as
// TFLite does. The data are input 0, the update is input 1, the indices are input 2. Shapes must be
// known; needsRuntimeValue() while the indices have no value. kBadData for a rank that differs and
// an update that is larger than the data.
Result<std::vector<int64_t>> parseUpdateBegin(const OperationContext& context);

}  // namespace hearth::ops
