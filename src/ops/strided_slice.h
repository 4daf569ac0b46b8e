// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::ops {

// Masks are resolved: in input dimension i, size[i] elements are taken at begin[i],
// begin[i] + stride[i], ... and all of them lie inside the input.
struct StridedSliceParameters {
  std::vector<int64_t> begin;
  std::vector<int64_t> stride;  // never 0
  std::vector<uint32_t> size;
  Dimensions dimensions;  // of the output: size without the dimensions that shrink
};

// needsRuntimeValue() while begin, end or strides have no value yet.
Result<StridedSliceParameters> parseStridedSlice(const OperationContext& context);

}  // namespace hearth::ops
