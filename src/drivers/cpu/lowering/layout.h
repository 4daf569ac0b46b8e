// SPDX-License-Identifier: Apache-2.0
// Operations that move, reduce or resample tensors. Functions that return false add no node.
#pragma once

#include <cstdint>
#include <vector>

#include "drivers/cpu/plan/plan_builder.h"
#include "ops/strided_copy.h"

namespace hearth::cpu {

// The same bytes in another shape: shares memory where possible, else copies.
void addReshape(PlanBuilder* builder, uint32_t input, uint32_t output);

// output = inputs one after the other along `axis`; all of one type and quantisation.
Result<bool> addConcatenation(PlanBuilder* builder, const std::vector<uint32_t>& inputs,
                              uint32_t output, uint32_t axis);

// Equal or unequal parts of the input along `axis`.
Result<bool> addSplit(PlanBuilder* builder, uint32_t input, const std::vector<uint32_t>& outputs,
                      uint32_t axis);

// The slice of the input that `ranges` name, one for each dimension: false where it is not made of
// rows at one distance from each other, and where it is so large that threads share it.
Result<bool> addSlice(PlanBuilder* builder, uint32_t input, uint32_t output,
                      const std::vector<ops::SliceRange>& ranges);

// output[...] = input transposed by `permutation`.
Result<bool> addTranspose(PlanBuilder* builder, uint32_t input, uint32_t output,
                          const std::vector<size_t>& permutation);

// Mean over `axes` (non-negative, ascending); false for other types than float32, and for means of
// rows where the kernel of src/ops computes them faster.
Result<bool> addMean(PlanBuilder* builder, uint32_t input, uint32_t output,
                     const std::vector<uint32_t>& axes);

// Bilinear resize of an NHWC tensor.
Result<bool> addResizeBilinear(PlanBuilder* builder, uint32_t input, uint32_t output,
                               bool alignCorners, bool halfPixelCenters);

// Zero padding of an NHWC tensor in height and width; if all readers are convolutions, they apply
// it themselves. `before` and `after` have one entry for each dimension.
Result<bool> addZeroPad(PlanBuilder* builder, uint32_t input, uint32_t output,
                        const std::vector<uint32_t>& before, const std::vector<uint32_t>& after);

}  // namespace hearth::cpu
