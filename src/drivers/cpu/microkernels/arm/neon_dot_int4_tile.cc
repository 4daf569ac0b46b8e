// SPDX-License-Identifier: Apache-2.0
#include <hearth_xnnpack.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "drivers/cpu/microkernels/portable/int4_tile.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define HEARTH_INT4_NEON_DOT __attribute__((target("+dotprod")))

namespace hearth::cpu {
namespace {

// The sums of a block take half of the 32 registers.
constexpr size_t kMostRows = 4;
constexpr size_t kVectors = 4;  // of 4 columns, in a panel
constexpr size_t kVectorColumns = 4;

enum class Form { kFloatScales, kHalfScales, kWholeSums };

template <Form kForm>
HEARTH_INT4_NEON_DOT inline float32x4_t scalesAt(const uint8_t* scales, size_t vector) {
  if constexpr (kForm == Form::kHalfScales) {
    const uint8x8_t halves = vld1_u8(scales + vector * sizeof(float16x4_t));
    return vcvt_f32_f16(vreinterpret_f16_u8(halves));
  } else {
    return vreinterpretq_f32_u8(vld1q_u8(scales + vector * sizeof(float32x4_t)));
  }
}

// Adds the products of one group of inputs.
template <size_t kRows>
HEARTH_INT4_NEON_DOT inline void addGroup(const uint8_t* rows, size_t stride,
                                          const uint8_t* weights,
                                          int32x4_t (&dots)[kRows][kVectors]) {
  int8x16_t first[kVectors];
  int8x16_t second[kVectors];
#pragma GCC unroll 4
  for (size_t v = 0; v < kVectors; ++v) {
    const uint8x16_t both = vld1q_u8(weights + v * sizeof both);
    first[v] = vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15)));
    second[v] = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
    const int8x8_t inputs = vreinterpret_s8_u8(vld1_u8(rows + r * stride));
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      dots[r][v] = vdotq_lane_s32(dots[r][v], first[v], inputs, 0);
      dots[r][v] = vdotq_lane_s32(dots[r][v], second[v], inputs, 1);
    }
  }
}

// Writes the results of a row's columns: `values`, clamped.
HEARTH_INT4_NEON_DOT inline void write(const Qb4Gemm& product, const Int4Tile& tile, size_t row,
                                       const float32x4_t (&values)[kVectors]) {
  float* const output = tile.output + row * product.outputStride;
  float last[kInt4Columns];
  float* const to = tile.columns >= kInt4Columns ? output : last;
#pragma GCC unroll 4
  for (size_t v = 0; v < kVectors; ++v) {
    // A NaN stays a NaN.
    const float32x4_t raised = vmaxq_f32(values[v], vdupq_n_f32(product.lowest));
    vst1q_f32(to + kVectorColumns * v, vminq_f32(raised, vdupq_n_f32(product.highest)));
  }
  if (to == last) std::copy_n(last, tile.columns, output);
}

template <Form kForm, size_t kRows>
HEARTH_INT4_NEON_DOT void multiplyTile(const Qb4Gemm& product, const Int4Tile& tile) {
  constexpr size_t kScaleBytes = kForm == Form::kHalfScales ? sizeof(uint16_t) : sizeof(float);
  const size_t stride = int4RowBytes(product);
  const uint8_t* corrections = tile.rows + int4CorrectionsOffset(product);
  const auto* const head = reinterpret_cast<const float*>(tile.panel);
  const float* const biases = head + kInt4Columns;
  float32x4_t sums[kRows][kVectors] = {};
  const uint8_t* rows = tile.rows;
  const uint8_t* weights = tile.panel + kInt4HeadBytes;
  const uint8_t* ahead = tile.ahead;
  const size_t groups = product.blockSize / kInt4Group;
  // Blocks are long where there is one only: then weights are fetched between its groups.
  const size_t aheadStep = (tile.aheadStep + groups - 1) / groups;
  for (size_t b = product.blocks(); b > 0; --b) {
    const uint8_t* const scales = weights;
    weights += kInt4Columns * kScaleBytes;
    int32x4_t dots[kRows][kVectors];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      int32_t correction;
      std::memcpy(&correction, corrections + r * stride, sizeof correction);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) dots[r][v] = vdupq_n_s32(correction);
    }
    corrections += sizeof(int32_t);
    for (size_t g = 0; g < groups; ++g) {
      for (size_t fetched = 0; fetched < aheadStep; fetched += kInt4Line)
        __builtin_prefetch(ahead + fetched, 0, 2);
      ahead += aheadStep;
      addGroup<kRows>(rows, stride, weights, dots);
      rows += kInt4Group;
      weights += kInt4Line;
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      const float32x4_t scale = scalesAt<kForm>(scales, v);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        if constexpr (kForm == Form::kWholeSums) {
          const int32x4_t weightSums =
              vreinterpretq_s32_u8(vld1q_u8(tile.panel + v * sizeof(int32x4_t)));
          const int32x4_t exact =
              vmlsq_n_s32(dots[r][v], weightSums, tile.parameters[r].zero_point);
          const float32x4_t scaled = vmulq_n_f32(vcvtq_f32_s32(exact), tile.parameters[r].scale);
          sums[r][v] = vfmaq_f32(vld1q_f32(biases + kVectorColumns * v), scaled, scale);
        } else {
          sums[r][v] = vfmaq_f32(sums[r][v], vcvtq_f32_s32(dots[r][v]), scale);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
    if constexpr (kForm != Form::kWholeSums) {
      const float zeroPoint = static_cast<float>(tile.parameters[r].zero_point);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        const float32x4_t weightSums = vld1q_f32(head + kVectorColumns * v);
        const float32x4_t sum = vfmsq_n_f32(sums[r][v], weightSums, zeroPoint);
        sums[r][v] =
            vfmaq_n_f32(vld1q_f32(biases + kVectorColumns * v), sum, tile.parameters[r].scale);
      }
    }
    write(product, tile, r, sums[r]);
  }
}

template <Form kForm, size_t... kIndex>
constexpr Int4Tiles::Functions allTiles(std::index_sequence<kIndex...>) {
  return {multiplyTile<kForm, kIndex + 1>...};
}

}  // namespace

const Int4Tiles kNeonDotInt4Tiles = {
    kMostRows, allTiles<Form::kFloatScales>(std::make_index_sequence<kMostRows>()),
    allTiles<Form::kHalfScales>(std::make_index_sequence<kMostRows>()),
    allTiles<Form::kWholeSums>(std::make_index_sequence<kMostRows>())};

}  // namespace hearth::cpu

#endif
