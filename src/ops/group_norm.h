// SPDX-License-Identifier: Apache-2.0
// GROUP_NORM: its arguments, parsed.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// The data are [batches, groups, groupChannels, inner] or, with the channels last, [batches, outer,
// groups, groupChannels]. In general there are positions both before and after the channels.
struct GroupNormParameters {
  size_t batches = 0, outer = 1, groups = 0, groupChannels = 0, inner = 1;
  float epsilon = 0.0f;

  size_t channels() const { return groups * groupChannels; }
};

// Reads and checks every argument; shapes of inputs must be known. kBadData, or kUnsupported for
// scalars known only at run time.
Result<GroupNormParameters> parseGroupNorm(const OperationContext& context);

}  // namespace hearth::ops
