// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL: its arguments, parsed.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// [.., rows, depth] times [.., depth, columns]; each input may hold its matrices transposed. The
// leading dimensions are broadcast.
struct BatchMatmulParameters {
  bool isLeftTransposed = false;
  bool isRightTransposed = false;
  uint32_t rows = 0;
  uint32_t depth = 0;
  uint32_t columns = 0;
  Dimensions leftBatches;
  Dimensions rightBatches;
  Dimensions outputBatches;

  Dimensions outputDimensions() const {
    Dimensions dimensions = outputBatches;
    dimensions.insert(dimensions.end(), {rows, columns});
    return dimensions;
  }
};

// Reads and checks every argument; shapes of inputs must be known. Errors as parseConv2d().
Result<BatchMatmulParameters> parseBatchMatmul(const OperationContext& context);

}  // namespace hearth::ops
