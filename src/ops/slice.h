// SPDX-License-Identifier: Apache-2.0
// SLICE and STRIDED_SLICE: which elements they take.
#pragma once

#include <vector>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/strided_copy.h"

namespace hearth::ops {

struct SliceParameters {
  std::vector<SliceRange> ranges;  // by dimension of the input
  Dimensions dimensions;           // of the output: the ranges' sizes, without dropped dimensions
};

// needsRuntimeValue() while begin or size have no value yet. A size of -1 reaches to the end.
Result<SliceParameters> parseSlice(const OperationContext& context);

// Masks are applied. needsRuntimeValue() while begin, end or strides have no value yet.
Result<SliceParameters> parseStridedSlice(const OperationContext& context);

// Copies the elements that `parameters` name from input 0 to output 0.
void copySlice(const OperationContext& context, const SliceParameters& parameters);

template <auto parse>
Status executeSlice(OperationContext& context) {
  HEARTH_ASSIGN(const SliceParameters parameters, parse(context));
  copySlice(context, parameters);
  return {};
}

}  // namespace hearth::ops
