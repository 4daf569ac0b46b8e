// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/portable/attention_block.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/vector_dispatch.h"
#include "drivers/cpu/microkernels/portable/vector_math.h"

namespace hearth::cpu {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// The vectors of an instruction set, and the number of rows that pass keys or values together. So
// many that these fit into the registers: two sums for each row, two vectors of keys or values, and
// one for the row's element.
template <size_t kSize, size_t kRowsOfTile>
struct Registers {
  typedef float Vector __attribute__((vector_size(kSize)));
  static constexpr size_t kLanes = kSize / sizeof(float);
  static constexpr size_t kRows = kRowsOfTile;
  // Elements of keys or values in one step.
  static constexpr size_t kColumns = 2 * kLanes;
  static_assert(kKeyPanel % kColumns == 0 && kAttentionRows % kRows == 0);

  // Memory may have any alignment.
  HEARTH_INLINE static void load(Vector& vector, const float* values) {
    std::memcpy(&vector, values, sizeof vector);
  }
  HEARTH_INLINE static void store(float* values, const Vector& vector) {
    std::memcpy(values, &vector, sizeof vector);
  }
};
using Wide = Registers<64, 8>;
using WideOfFew = Registers<64, 4>;
using WideOfOne = Registers<64, 1>;
using Middle = Registers<32, 4>;
using MiddleOfOne = Registers<32, 1>;
using Narrow = Registers<16, 4>;

// Products of kRows rows with one panel of packed keys.
template <typename R>
HEARTH_INLINE inline void panelDots(const float* const* queries, const float* panel, size_t size,
                                    float* logits, size_t stride) {
  typename R::Vector sums[R::kRows][2] = {};
  const float* rows[R::kRows];
#pragma GCC unroll 8
  for (size_t r = 0; r < R::kRows; ++r) rows[r] = queries[r];
  for (size_t i = 0; i < size; ++i, panel += R::kColumns) {
    typename R::Vector first;
    typename R::Vector second;
    R::load(first, panel);
    R::load(second, panel + R::kLanes);
#pragma GCC unroll 8
    for (size_t r = 0; r < R::kRows; ++r) {
      sums[r][0] += rows[r][i] * first;
      sums[r][1] += rows[r][i] * second;
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < R::kRows; ++r) {
    R::store(logits + r * stride, sums[r][0]);
    R::store(logits + r * stride + R::kLanes, sums[r][1]);
  }
}

// The same with one key in place: with few rows, packing the keys would take longer.
template <typename R>
HEARTH_INLINE inline void keyDots(const float* const* queries, const float* key, size_t size,
                                  float* logits, size_t stride) {
  constexpr size_t kRows = std::min<size_t>(4, R::kRows);
  for (size_t first = 0; first < R::kRows; first += kRows) {
    typename R::Vector sums[kRows][2] = {};
    size_t i = 0;
    for (; i + R::kColumns <= size; i += R::kColumns) {
      typename R::Vector keys[2];
      R::load(keys[0], key + i);
      R::load(keys[1], key + i + R::kLanes);
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        typename R::Vector query[2];
        R::load(query[0], queries[first + r] + i);
        R::load(query[1], queries[first + r] + i + R::kLanes);
        sums[r][0] += query[0] * keys[0];
        sums[r][1] += query[1] * keys[1];
      }
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      float lanes[R::kLanes];
      sums[r][0] += sums[r][1];
      R::store(lanes, sums[r][0]);
#pragma GCC unroll 8
      for (size_t half = R::kLanes / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
      float total = lanes[0];
      for (size_t rest = i; rest < size; ++rest) total += queries[first + r][rest] * key[rest];
      logits[(first + r) * stride] = total;
    }
  }
}

// Turns products into logits, and these into weights without their common factor, which is
// returned. The weights are NaN where the mask leaves nothing, as the results of soft-max are.
HEARTH_INLINE inline float softmax(const ops::AttentionParameters& p, const float* mask,
                                   size_t maskStride, size_t count, float* logits) {
  constexpr size_t kLanes = 32;
  const size_t whole = count / kLanes * kLanes;
  float highs[kLanes];
  std::fill_n(highs, kLanes, kMasked);
  // Without cap and mask the scale is applied in the pass that finds the highest logit.
  const bool isPlain = p.logitCap <= 0.0f && mask == nullptr;
  const float scale = isPlain ? p.scale : 1.0f;
  if (!isPlain) {
    for (size_t s = 0; s < count; ++s) logits[s] *= p.scale;
    if (p.logitCap > 0.0f)
      for (size_t s = 0; s < count; ++s) logits[s] = p.logitCap * std::tanh(logits[s] / p.logitCap);
    if (mask != nullptr && maskStride == 0)
      for (size_t s = 0; s < count; ++s) logits[s] += *mask;
    if (mask != nullptr && maskStride != 0) {
#pragma GCC ivdep
      for (size_t s = 0; s < count; ++s) logits[s] += mask[s];
    }
  }
  for (size_t s = 0; s < whole; s += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = logits[s + lane] * scale;
      logits[s + lane] = logit;
      highs[lane] = highs[lane] < logit ? logit : highs[lane];
    }
  }
  for (size_t s = whole; s < count; ++s) {
    logits[s] *= scale;
    highs[0] = highs[0] < logits[s] ? logits[s] : highs[0];
  }
  float highest = kMasked;
  for (size_t lane = 0; lane < kLanes; ++lane) highest = std::max(highest, highs[lane]);
  float sums[kLanes] = {};
  for (size_t s = 0; s < whole; s += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float weight = expVector(logits[s + lane] - highest);
      logits[s + lane] = weight;
      sums[lane] += weight;
    }
  }
  double total = 0.0;
  for (size_t s = whole; s < count; ++s) {
    logits[s] = expVector(logits[s] - highest);
    total += logits[s];
  }
  for (size_t lane = 0; lane < kLanes; ++lane) total += sums[lane];
  return static_cast<float>(1.0 / total);
}

// Weighted sums of values that are transposed, of which each element is a row of positions.
template <typename R>
HEARTH_INLINE inline void mixTransposed(const float* weights, size_t stride, const float* factors,
                                        const float* values, size_t valueStride, size_t count,
                                        size_t size, float* const* outputs, size_t rows) {
  const float* weightRows[R::kRows];
  for (size_t r = 0; r < R::kRows; ++r) weightRows[r] = weights + r * stride;
  for (size_t i = 0; i < size; ++i, values += valueStride) {
    float sums[R::kRows];
    keyDots<R>(weightRows, values, count, sums, 1);
    for (size_t r = 0; r < rows; ++r) outputs[r][i] = sums[r] * factors[r];
  }
}

// Weighted sums of `columns` <= kColumns elements of the values for kRows rows, of which the first
// `rows` are stored.
template <typename R, bool kIsWhole>
HEARTH_INLINE inline void mix(const float* weights, size_t stride, const float* factors,
                              const float* values, size_t valueStride, size_t count, size_t columns,
                              float* const* outputs, size_t rows) {
  typename R::Vector sums[R::kRows][2] = {};
  for (size_t s = 0; s < count; ++s, values += valueStride) {
    float part[R::kColumns];
    const float* value = values;
    if constexpr (!kIsWhole) {
      for (size_t i = 0; i < R::kColumns; ++i) part[i] = i < columns ? values[i] : 0.0f;
      value = part;
    }
    typename R::Vector first;
    typename R::Vector second;
    R::load(first, value);
    R::load(second, value + R::kLanes);
#pragma GCC unroll 8
    for (size_t r = 0; r < R::kRows; ++r) {
      sums[r][0] += weights[r * stride + s] * first;
      sums[r][1] += weights[r * stride + s] * second;
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < R::kRows; ++r) {
    if (r >= rows) break;
    float part[R::kColumns];
    sums[r][0] *= factors[r];
    sums[r][1] *= factors[r];
    R::store(part, sums[r][0]);
    R::store(part + R::kLanes, sums[r][1]);
    if constexpr (kIsWhole)
      std::memcpy(outputs[r], part, sizeof part);
    else
      std::copy_n(part, columns, outputs[r]);
  }
}

// The elements of packed values are divided into groups of at most this many vectors, and of nearly
// equal size.
constexpr size_t kMostVectors = 3;

// Calls group(first element, number of vectors) for each group.
template <typename R, typename Group>
HEARTH_INLINE inline void forValueGroups(size_t valueSize, const Group& group) {
  const size_t vectors = (valueSize + R::kLanes - 1) / R::kLanes;
  const size_t groups = (vectors + kMostVectors - 1) / kMostVectors;
  for (size_t g = 0; g < groups; ++g) {
    const size_t first = g * vectors / groups;
    group(first * R::kLanes, (g + 1) * vectors / groups - first);
  }
}

// Weighted sums of one group of packed values, of which `columns` elements are no padding, for
// kRows rows, of which the first `rows` are stored.
template <typename R, size_t kVectors>
HEARTH_INLINE inline void mixPacked(const float* weights, size_t stride, const float* factors,
                                    const float* values, size_t count, size_t columns,
                                    float* const* outputs, size_t rows) {
  typename R::Vector sums[R::kRows][kVectors] = {};
  for (size_t s = 0; s < count; ++s, values += kVectors * R::kLanes) {
    typename R::Vector value[kVectors];
#pragma GCC unroll 3
    for (size_t v = 0; v < kVectors; ++v) R::load(value[v], values + v * R::kLanes);
#pragma GCC unroll 8
    for (size_t r = 0; r < R::kRows; ++r) {
#pragma GCC unroll 3
      for (size_t v = 0; v < kVectors; ++v) sums[r][v] += weights[r * stride + s] * value[v];
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < R::kRows; ++r) {
    if (r >= rows) break;
    float part[kVectors * R::kLanes];
#pragma GCC unroll 3
    for (size_t v = 0; v < kVectors; ++v) {
      sums[r][v] *= factors[r];
      R::store(part + v * R::kLanes, sums[r][v]);
    }
    std::copy_n(part, columns, outputs[r]);
  }
}

template <typename R>
HEARTH_INLINE inline void attendWith(const ops::AttentionParameters& p,
                                     const AttentionBlock& block) {
  const size_t count = block.range.end - block.range.begin;
  if (block.range.begin >= block.range.end) {
    for (size_t r = 0; r < block.rows; ++r)
      std::fill_n(block.outputs[r], p.valueSize,
                  p.keys == 0 ? 0.0f : std::numeric_limits<float>::quiet_NaN());
    return;
  }
  const size_t stride = logitsStride(p.keys);
  for (size_t first = 0; first < block.rows; first += R::kRows) {
    // Panels count from the first packed key, so one may begin before this block's first key.
    size_t skipped = 0;
    if (block.packedKeys != nullptr) {
      const size_t before = block.range.begin - block.firstPacked;
      skipped = before % R::kColumns;
      const float* panel = block.packedKeys + (before - skipped) * p.size;
      for (size_t s = 0; s < count + skipped; s += R::kColumns, panel += R::kColumns * p.size)
        panelDots<R>(block.queries.data() + first, panel, p.size, block.logits + s, stride);
    } else {
      const float* key = block.keys + block.range.begin * block.keyStride;
      for (size_t s = 0; s < count; ++s, key += block.keyStride)
        keyDots<R>(block.queries.data() + first, key, p.size, block.logits + s, stride);
    }
    float factors[R::kRows];
    for (size_t r = 0; r < R::kRows; ++r) {
      if (block.areUniform[first + r]) {
        std::fill_n(block.logits + r * stride + skipped, count, 1.0f);
        factors[r] = 1.0f / static_cast<float>(count);
        continue;
      }
      const float* mask = block.masks[first + r];
      if (mask != nullptr) mask += block.range.begin * block.maskStride;
      factors[r] = softmax(p, mask, block.maskStride, count, block.logits + r * stride + skipped);
    }
    const size_t rows = std::min(R::kRows, block.rows - first);
    float* outputs[R::kRows];
    std::copy_n(block.outputs.data() + first, R::kRows, outputs);
    if (block.packedValues != nullptr) {
      const size_t before = block.range.begin - block.firstPacked;
      forValueGroups<R>(p.valueSize, [&](size_t column, size_t vectors) HEARTH_INLINE {
        const float* values =
            block.packedValues + column * paddedKeys(p.keys) + before * vectors * R::kLanes;
        const size_t columns = std::min(vectors * R::kLanes, p.valueSize - column);
        const float* weights = block.logits + skipped;
        if (vectors == 3)
          mixPacked<R, 3>(weights, stride, factors, values, count, columns, outputs, rows);
        else if (vectors == 2)
          mixPacked<R, 2>(weights, stride, factors, values, count, columns, outputs, rows);
        else
          mixPacked<R, 1>(weights, stride, factors, values, count, columns, outputs, rows);
        for (float*& output : outputs) output += columns;
      });
      continue;
    }
    const size_t valueStride = block.values.stride;
    if (block.values.areTransposed) {
      mixTransposed<R>(block.logits, stride, factors, block.values.first + block.range.begin,
                       valueStride, count, p.valueSize, outputs, rows);
      continue;
    }
    const float* values = block.values.first + block.range.begin * valueStride;
    size_t column = 0;
    for (; column + R::kColumns <= p.valueSize; column += R::kColumns) {
      mix<R, true>(block.logits + skipped, stride, factors, values + column, valueStride, count,
                   R::kColumns, outputs, rows);
      for (float*& output : outputs) output += R::kColumns;
    }
    if (column < p.valueSize)
      mix<R, false>(block.logits + skipped, stride, factors, values + column, valueStride, count,
                    p.valueSize - column, outputs, rows);
  }
}

template <typename R>
HEARTH_INLINE inline void packWith(const float* keys, size_t stride, size_t size, KeyRange range,
                                   float* packed) {
  for (size_t first = range.begin; first < range.end; first += R::kColumns) {
    const size_t count = std::min(R::kColumns, range.end - first);
    for (size_t k = 0; k < count; ++k) {
      const float* key = keys + (first + k) * stride;
      for (size_t i = 0; i < size; ++i) packed[i * R::kColumns + k] = key[i];
    }
    for (size_t k = count; k < R::kColumns; ++k)
      for (size_t i = 0; i < size; ++i) packed[i * R::kColumns + k] = 0.0f;
    packed += R::kColumns * size;
  }
}

template <typename R>
HEARTH_INLINE inline void packValuesWith(const AttentionValues& values, size_t size, KeyRange range,
                                         uint32_t firstPacked, size_t keys, float* packed) {
  forValueGroups<R>(size, [&](size_t column, size_t vectors) {
    const size_t width = vectors * R::kLanes;
    const size_t columns = std::min(width, size - column);
    float* to = packed + column * paddedKeys(keys) + (range.begin - firstPacked) * width;
    if (values.areTransposed) {
      const size_t count = range.end - range.begin;
      for (size_t i = 0; i < width; ++i) {
        const float* const from = values.first + (column + i) * values.stride + range.begin;
        for (size_t s = 0; s < count; ++s) to[s * width + i] = i < columns ? from[s] : 0.0f;
      }
      return;
    }
    for (size_t s = range.begin; s < range.end; ++s, to += width) {
      std::copy_n(values.first + s * values.stride + column, columns, to);
      std::fill(to + columns, to + width, 0.0f);
    }
  });
}

#if defined(__x86_64__)
#define HEARTH_AVX2 __attribute__((target("avx2,fma")))
#define HEARTH_AVX512 __attribute__((target(HEARTH_TARGET_AVX512)))

HEARTH_AVX2 void attendAvx2(const ops::AttentionParameters& p, const AttentionBlock& block) {
  if (block.rows == 1) return attendWith<MiddleOfOne>(p, block);
  attendWith<Middle>(p, block);
}
HEARTH_AVX512 void attendAvx512(const ops::AttentionParameters& p, const AttentionBlock& block) {
  if (block.rows == 1) return attendWith<WideOfOne>(p, block);
  if (block.rows <= WideOfFew::kRows) return attendWith<WideOfFew>(p, block);
  attendWith<Wide>(p, block);
}

#endif

}  // namespace

AttentionLevel attentionLevel() {
#if defined(__x86_64__)
  static const AttentionLevel level =
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl")
          ? AttentionLevel::kAvx512
      : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? AttentionLevel::kAvx2
                                                                        : AttentionLevel::kNarrow;
  return level;
#else
  return AttentionLevel::kNarrow;
#endif
}

KeyRange seenKeys(const float* mask, size_t stride, uint32_t keys) {
  if (stride == 0) return *mask == kMasked ? KeyRange{} : KeyRange{0, keys};
  KeyRange range;
  base::onWidestVectors([&, mask]() HEARTH_INLINE {
    constexpr uint32_t kLanes = 32;
    float highs[kLanes];
    std::fill_n(highs, kLanes, kMasked);
    const uint32_t whole = keys / kLanes * kLanes;
    for (uint32_t s = 0; s < whole; s += kLanes)
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        highs[lane] = highs[lane] < mask[s + lane] ? mask[s + lane] : highs[lane];
    for (uint32_t s = whole; s < keys; ++s) highs[0] = highs[0] < mask[s] ? mask[s] : highs[0];
    float greatest = kMasked;
    for (const float high : highs) greatest = std::max(greatest, high);
    // The distance between neighbours may be more than kHidingDistance.
    const float distant = greatest - kHidingDistance;
    const float hiding = distant < greatest ? distant : std::nextafter(greatest, kMasked);
    uint32_t begin = keys;
    uint32_t end = 0;
    for (uint32_t s = 0; s < keys; ++s) {
      const bool isHidden = mask[s] <= hiding;
      begin = std::min(begin, isHidden ? keys : s);
      end = std::max(end, isHidden ? 0 : s + 1);
    }
    range = {std::min(begin, end), end};
  });
  return range;
}

void packKeys(const float* keys, size_t stride, size_t size, KeyRange range, float* packed,
              AttentionLevel level) {
  switch (level) {
    case AttentionLevel::kAvx512:
      return packWith<Wide>(keys, stride, size, range, packed);
    case AttentionLevel::kAvx2:
      return packWith<Middle>(keys, stride, size, range, packed);
    case AttentionLevel::kNarrow:
      return packWith<Narrow>(keys, stride, size, range, packed);
  }
}

void packValues(const AttentionValues& values, size_t size, KeyRange range, uint32_t firstPacked,
                size_t keys, float* packed, AttentionLevel level) {
  switch (level) {
    case AttentionLevel::kAvx512:
      return packValuesWith<Wide>(values, size, range, firstPacked, keys, packed);
    case AttentionLevel::kAvx2:
      return packValuesWith<Middle>(values, size, range, firstPacked, keys, packed);
    case AttentionLevel::kNarrow:
      return packValuesWith<Narrow>(values, size, range, firstPacked, keys, packed);
  }
}

void attend(const ops::AttentionParameters& p, const AttentionBlock& block,
            [[maybe_unused]] AttentionLevel level) {
#if defined(__x86_64__)
  if (level == AttentionLevel::kAvx512) return attendAvx512(p, block);
  if (level == AttentionLevel::kAvx2) return attendAvx2(p, block);
#endif
  attendWith<Narrow>(p, block);
}

}  // namespace hearth::cpu
