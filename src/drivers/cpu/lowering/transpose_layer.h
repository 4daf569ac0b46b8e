// SPDX-License-Identifier: Apache-2.0
// int8 transposed convolutions on our own product, where the CPU has AVX-512 VNNI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/qs8_gemm.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "ops/transpose_conv_2d.h"

namespace hearth::cpu {

// Outputs that lie a stride apart are a convolution of the input with a stride of 1, over every
// stride-th tap of the filter, the last one first. This is such a part along one dimension.
struct TransposePart {
  size_t first = 0, count = 0;   // outputs
  size_t lastTap = 0, taps = 0;  // none where the filter is smaller than the stride
  int64_t before = 0;            // inputs of the first window that lie before the image's
};

// An int8 transposed convolution of NHWC tensors.
struct TransposeLayer {
  ops::TransposeConv2dParameters geometry;
  // For all parts but for `inputs`; `packed` has theirs one behind the other.
  Qs8Gemm product;
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;

  // Each combination of the two is a convolution.
  std::vector<TransposePart> partsOfRows() const;
  std::vector<TransposePart> partsOfColumns() const;
  // The product of one combination, without packed weights.
  Qs8Gemm productOf(const TransposePart& rows, const TransposePart& columns) const;
  size_t packedBytes() const;
};

// Packs weights [outputs][height][width][inputs] with their bias (may be null) and a factor for
// each output channel to `packed`, which has packedBytes().
void packTranspose(const TransposeLayer& layer, const int8_t* weights, const int32_t* bias,
                   const float* factors, uint8_t* packed);

// A kernel with our product, where hasVnniGemm(), that gives the very bytes of XNNPACK's. Packed
// weights stay where they are as long as it lives.
std::unique_ptr<Kernel> makeTransposeLayerKernel(const TransposeLayer& layer);

// Adds the node for a layer of NHWC tensors, whose types and constants are those that XNNPACK
// takes; false when it is not of int8, its strides are long, or this CPU lacks the instructions.
Result<bool> addTransposeLayer(PlanBuilder* builder,
                               const ops::TransposeConv2dParameters& geometry);

}  // namespace hearth::cpu
