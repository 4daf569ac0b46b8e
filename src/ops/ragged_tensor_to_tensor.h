// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hearth::ops {

// What a partition of RAGGED_TENSOR_TO_TENSOR holds.
enum class RowPartition : int32_t {
  kFirstDimension = 0,  // the number of rows of the outermost dimension
  kRowIds = 1,          // for each element, its row; ascending
  kRowSplits = 2,       // where each row begins, and where the last one ends
};

}  // namespace hearth::ops
