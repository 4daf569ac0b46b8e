// SPDX-License-Identifier: Apache-2.0
// RFFT2D of the extension: the arguments, parsed.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

struct RfftParameters {
  // Of the images in the input, the last two dimensions.
  size_t rows = 0, columns = 0;
  // Of the images that are transformed; powers of two.
  size_t height = 0, width = 0;
  Dimensions outputDimensions;  // the last two are height and width / 2 + 1
};

// kBadData for shapes and lengths that do not fit; needsRuntimeValue() while the lengths are
// unknown.
Result<RfftParameters> parseRfft(const OperationContext& context);

}  // namespace hearth::ops
