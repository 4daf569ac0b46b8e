// SPDX-License-Identifier: Apache-2.0
// What the inner kernels of Qb4Gemm have in common on ARM64: all but the products of a block.
#pragma once

#include <hearth_xnnpack.h>

#include <algorithm>
#include <cstring>

#include "drivers/cpu/microkernels/portable/int4_tile.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace hearth::cpu {

inline constexpr size_t kNeonInt4Vectors = 4;  // of 4 columns, in a panel
inline constexpr size_t kNeonVectorColumns = 4;

// A sum for each row of a tile and each column of the panel.
template <size_t kRows>
using NeonInt4Sums = int32x4_t[kRows][kNeonInt4Vectors];

// The groups of a block. Their weights follow each other, and so do the numbers of each row.
struct NeonInt4Block {
  const uint8_t* rows = nullptr;
  size_t stride = 0;  // bytes from one row to the next
  const uint8_t* weights = nullptr;
  size_t groups = 0;
  // Weights to prefetch meanwhile, `aheadStep` bytes for each group.
  const uint8_t* ahead = nullptr;
  size_t aheadStep = 0;

  void prefetch() {
    for (size_t fetched = 0; fetched < aheadStep; fetched += kInt4Line)
      __builtin_prefetch(ahead + fetched, 0, 2);
    ahead += aheadStep;
  }
};

enum class NeonInt4Form { kFloatScales, kHalfScales, kWholeSums };

template <NeonInt4Form kForm>
inline float32x4_t neonInt4Scales(const uint8_t* scales, size_t vector) {
  if constexpr (kForm == NeonInt4Form::kHalfScales) {
    const uint8x8_t halves = vld1_u8(scales + vector * sizeof(float16x4_t));
    return vcvt_f32_f16(vreinterpret_f16_u8(halves));
  } else {
    return vreinterpretq_f32_u8(vld1q_u8(scales + vector * sizeof(float32x4_t)));
  }
}

// Writes the results of a row's columns: `values`, clamped.
inline void writeNeonInt4(const Qb4Gemm& product, const Int4Tile& tile, size_t row,
                          const float32x4_t (&values)[kNeonInt4Vectors]) {
  float* const output = tile.output + row * product.outputStride;
  float last[kInt4Columns];
  float* const to = tile.columns >= kInt4Columns ? output : last;
#pragma GCC unroll 4
  for (size_t v = 0; v < kNeonInt4Vectors; ++v) {
    // A NaN stays a NaN.
    const float32x4_t raised = vmaxq_f32(values[v], vdupq_n_f32(product.lowest));
    vst1q_f32(to + kNeonVectorColumns * v, vminq_f32(raised, vdupq_n_f32(product.highest)));
  }
  if (to == last) std::copy_n(last, tile.columns, output);
}

// Products::addBlock<kRows>(block, sums) adds the products of a block to its sums. It may be of a
// set of instructions that this function is not of: who calls this one is of it, and inlines both.
template <typename Products, NeonInt4Form kForm, size_t kRows>
inline void multiplyNeonInt4Tile(const Qb4Gemm& product, const Int4Tile& tile) {
  constexpr size_t kScaleBytes =
      kForm == NeonInt4Form::kHalfScales ? sizeof(uint16_t) : sizeof(float);
  const size_t stride = int4RowBytes(product);
  const uint8_t* corrections = tile.rows + int4CorrectionsOffset(product);
  const auto* const head = reinterpret_cast<const float*>(tile.panel);
  const float* const biases = head + kInt4Columns;
  float32x4_t sums[kRows][kNeonInt4Vectors] = {};
  const size_t groups = product.blockSize / kInt4Group;
  NeonInt4Block block;
  block.rows = tile.rows;
  block.stride = stride;
  block.weights = tile.panel + kInt4HeadBytes;
  block.groups = groups;
  block.ahead = tile.ahead;
  // Blocks are long where there is one only: then weights are fetched between its groups.
  block.aheadStep = (tile.aheadStep + groups - 1) / groups;
  for (size_t b = product.blocks(); b > 0; --b) {
    const uint8_t* const scales = block.weights;
    block.weights += kInt4Columns * kScaleBytes;
    NeonInt4Sums<kRows> dots;
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      int32_t correction;
      std::memcpy(&correction, corrections + r * stride, sizeof correction);
#pragma GCC unroll 4
      for (size_t v = 0; v < kNeonInt4Vectors; ++v) dots[r][v] = vdupq_n_s32(correction);
    }
    corrections += sizeof(int32_t);
    Products::template addBlock<kRows>(block, dots);
    block.rows += product.blockSize;
    block.weights += groups * kInt4Line;
    block.ahead += groups * block.aheadStep;
#pragma GCC unroll 4
    for (size_t v = 0; v < kNeonInt4Vectors; ++v) {
      const float32x4_t scale = neonInt4Scales<kForm>(scales, v);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        if constexpr (kForm == NeonInt4Form::kWholeSums) {
          const int32x4_t weightSums =
              vreinterpretq_s32_u8(vld1q_u8(tile.panel + v * sizeof(int32x4_t)));
          const int32x4_t exact =
              vmlsq_n_s32(dots[r][v], weightSums, tile.parameters[r].zero_point);
          const float32x4_t scaled = vmulq_n_f32(vcvtq_f32_s32(exact), tile.parameters[r].scale);
          sums[r][v] = vfmaq_f32(vld1q_f32(biases + kNeonVectorColumns * v), scaled, scale);
        } else {
          sums[r][v] = vfmaq_f32(sums[r][v], vcvtq_f32_s32(dots[r][v]), scale);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
    if constexpr (kForm != NeonInt4Form::kWholeSums) {
      const float zeroPoint = static_cast<float>(tile.parameters[r].zero_point);
#pragma GCC unroll 4
      for (size_t v = 0; v < kNeonInt4Vectors; ++v) {
        const float32x4_t weightSums = vld1q_f32(head + kNeonVectorColumns * v);
        const float32x4_t sum = vfmsq_n_f32(sums[r][v], weightSums, zeroPoint);
        sums[r][v] =
            vfmaq_n_f32(vld1q_f32(biases + kNeonVectorColumns * v), sum, tile.parameters[r].scale);
      }
    }
    writeNeonInt4(product, tile, r, sums[r]);
  }
}

}  // namespace hearth::cpu

#endif
