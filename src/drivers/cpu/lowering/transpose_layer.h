// SPDX-License-Identifier: Apache-2.0
// int8 transposed convolutions on our products for AVX-512 VNNI and for AVX2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/lowering/transpose_parts.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_packing.h"
#include "drivers/cpu/microkernels/x86/avx512/qs8_gemm.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "ops/transpose_conv_2d.h"

namespace hearth::cpu {

// An int8 transposed convolution of NHWC tensors.
struct TransposeLayer {
  ops::TransposeConv2dParameters geometry;
  // Common to all parts, except for `inputs`; `packed` has the parts' weights one behind the other.
  // On AVX2 it only describes the output.
  Qs8Gemm product;
  int32_t inputZero = 0;
  ValueId source = 0, destination = 0;

  // The parts along the two dimensions; packed weights have their combinations in this order, rows
  // first.
  std::vector<TransposePart> partsOfRows() const;
  std::vector<TransposePart> partsOfColumns() const;
  // The product of one combination, without packed weights.
  Qs8Gemm productOf(const TransposePart& rows, const TransposePart& columns) const;
  size_t packedBytes() const;
};

// Packs weights [outputs][height][width][inputs] with their bias (may be null) and a factor for
// each output channel into `packed`, which has packedBytes() bytes.
void packTranspose(const TransposeLayer& layer, const int8_t* weights, const int32_t* bias,
                   const float* factors, uint8_t* packed);

// Makes a kernel with our product that gives the very bytes of XNNPACK's. Requires hasAvx512Vnni().
// The packed weights must outlive the kernel.
std::unique_ptr<Kernel> makeTransposeLayerKernel(const TransposeLayer& layer);

// The same weights for our product on AVX2. They must outlive the packer, as do the factors.
class Avx2TransposePacker {
 public:
  // Without a form, each part has the one that is fastest on this CPU.
  Avx2TransposePacker(const TransposeLayer& layer, const int8_t* weights, const int32_t* bias,
                      const float* factors, std::optional<Avx2Form> form);

  size_t bytes() const;
  // Writes bytes() bytes, which are 64-byte aligned.
  void pack(uint8_t* packed) const;

 private:
  // Of each combination of parts.
  std::vector<std::vector<int8_t>> weights_;
  std::vector<std::vector<int32_t>> constants_;
  std::vector<Avx2Packer> packers_;
};

// The same kernel over them; null when `packed` is not such a packing. Requires hasAvx2().
std::unique_ptr<Kernel> makeAvx2TransposeKernel(const TransposeLayer& layer,
                                                std::span<const uint8_t> packed);

// Adds the node for a layer of NHWC tensors; false when it is not int8, its strides are long, or
// this CPU lacks the instructions. The caller has checked types and constants.
Result<bool> addTransposeLayer(PlanBuilder* builder,
                               const ops::TransposeConv2dParameters& geometry);

}  // namespace hearth::cpu
