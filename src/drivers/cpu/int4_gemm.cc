// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/int4_gemm.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/vector_dispatch.h"
#include "ops/half.h"
#include "ops/int4.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::cpu {
namespace {

// Inputs that one register of weights holds, two in each byte.
constexpr size_t kGroup = 128;
// Bytes ahead of the weights in use that are asked for.
constexpr size_t kPrefetched = 4096;

float scaleAt(const Int4Weights& weights, size_t index) {
  return weights.areScalesHalf
             ? static_cast<float>(static_cast<const ops::Half*>(weights.scales)[index])
             : static_cast<const float*>(weights.scales)[index];
}

void unpackColumn(const Int4Weights& weights, size_t column, int8_t* numbers) {
  for (size_t i = 0; i < weights.inputs; ++i)
    numbers[i] = ops::int4At(weights.pairs, column * weights.inputs + i);
}

int32_t dot(const int8_t* a, const int8_t* b, size_t count) {
  int32_t result = 0;
  base::onWidestVectors([&]() HEARTH_INLINE {
    int32_t sum = 0;
    for (size_t i = 0; i < count; ++i) sum += int32_t{a[i]} * b[i];
    result = sum;
  });
  return result;
}

void multiplyPortably(const Int4Weights& weights, const Int4Rows& rows, size_t first, size_t last,
                      float* output) {
  const size_t blocks = weights.inputs / weights.blockSize;
  const size_t stride = int4RowBytes(weights.inputs);
  std::vector<int8_t> numbers(weights.inputs);
  for (size_t column = first; column < last; ++column) {
    unpackColumn(weights, column, numbers.data());
    for (size_t r = 0; r < rows.count; ++r) {
      const auto* row = reinterpret_cast<const int8_t*>(rows.numbers + r * stride);
      float sum = 0.0f;
      for (size_t b = 0; b < blocks; ++b)
        sum += scaleAt(weights, column * blocks + b) *
               static_cast<float>(dot(row + b * weights.blockSize,
                                      numbers.data() + b * weights.blockSize, weights.blockSize));
      output[r * weights.columns + column] =
          rows.scales[r] * (sum - rows.zeroPoints[r] * weights.sums[column]);
    }
  }
}

}  // namespace

size_t int4RowBytes(size_t inputs) {
  return (inputs + kGroup - 1) / kGroup * kGroup;
}

float int4ColumnSum(const Int4Weights& weights, size_t column) {
  const size_t blocks = weights.inputs / weights.blockSize;
  std::vector<int8_t> numbers(weights.inputs);
  unpackColumn(weights, column, numbers.data());
  double sum = 0.0;
  for (size_t b = 0; b < blocks; ++b) {
    int32_t part = 0;
    for (size_t i = 0; i < weights.blockSize; ++i) part += numbers[b * weights.blockSize + i];
    sum += static_cast<double>(scaleAt(weights, column * blocks + b)) * part;
  }
  return static_cast<float>(sum);
}

#if defined(__x86_64__)

#define HEARTH_INT4_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,f16c,fma")))

namespace {

bool usesVnni(const Int4Weights& weights) {
  static const bool has = __builtin_cpu_supports("avx512vnni") &&
                          __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("f16c");
  return has && weights.blockSize >= 32 && std::has_single_bit(weights.blockSize);
}

// What all tiles of a product have in common.
struct Geometry {
  explicit Geometry(const Int4Weights& weights)
      : stride(int4RowBytes(weights.inputs)),
        blocks(weights.inputs / weights.blockSize),
        scaleBytes(weights.areScalesHalf ? sizeof(ops::Half) : sizeof(float)),
        rowBytes(weights.inputs / 2),
        groupBlocks(std::max<size_t>(1, kGroup / weights.blockSize)) {
    for (size_t lane = 0; lane < 16; ++lane)
      places[lane] = static_cast<int32_t>(lane * 8 / std::min(weights.blockSize, kGroup));
  }

  size_t stride;       // bytes from one prepared row to the next
  size_t blocks;       // of a column
  size_t scaleBytes;   // of one scale
  size_t rowBytes;     // of a column's weights
  size_t groupBlocks;  // blocks that a group covers, or begins
  // Which of them each of the 16 sums belongs to, which are of 8 inputs each.
  alignas(64) int32_t places[16];
};

// The scales of one group, one for each of the 16 sums; `left` blocks of the column are left.
HEARTH_INT4_VNNI inline __m512 scalesOf(const Int4Weights& weights, const uint8_t* scales,
                                        size_t left, __m512i places) {
  __m128 values;
  if (left >= 4 && weights.areScalesHalf) {
    values = _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales)));
  } else {
    const auto mask = static_cast<__mmask8>((1u << std::min<size_t>(left, 4)) - 1);
    values = weights.areScalesHalf ? _mm_cvtph_ps(_mm_maskz_loadu_epi16(mask, scales))
                                   : _mm_maskz_loadu_ps(mask, scales);
  }
  return _mm512_permutexvar_ps(places, _mm512_castps128_ps512(values));
}

// A tile of kRows rows from `row` on and kColumns columns from `column` on.
template <size_t kRows, size_t kColumns>
HEARTH_INT4_VNNI void multiplyTile(const Int4Weights& weights, const Geometry& g,
                                   const Int4Rows& rows, size_t row, size_t column, float* output) {
  const __m512i places = _mm512_load_si512(g.places);
  const __m512i upper = _mm512_set1_epi8(static_cast<char>(0xF0));
  const uint8_t* pairs = weights.pairs + column * g.rowBytes;
  const auto* scales =
      static_cast<const uint8_t*>(weights.scales) + column * g.blocks * g.scaleBytes;
  const uint8_t* numbers = rows.numbers + row * g.stride;
  __m512 sums[kRows][kColumns];
  for (size_t r = 0; r < kRows; ++r)
    for (size_t c = 0; c < kColumns; ++c) sums[r][c] = _mm512_setzero_ps();
  for (size_t first = 0; first < weights.inputs; first += kGroup) {
    const size_t bytes = g.rowBytes - first / 2;
    const size_t block = first / weights.blockSize;
    for (size_t c = 0; c < kColumns; ++c) {
      const uint8_t* at = pairs + c * g.rowBytes + first / 2;
      // One row reads the weights once, from end to end.
      if (kRows == 1) _mm_prefetch(at + kPrefetched, _MM_HINT_T0);
      const __m512i both = bytes >= 64 ? _mm512_loadu_si512(at)
                                       : _mm512_maskz_loadu_epi8(~uint64_t{0} >> (64 - bytes), at);
      // Sixteen times the numbers, with their signs.
      const __m512i even = _mm512_and_si512(_mm512_slli_epi16(both, 4), upper);
      const __m512i odd = _mm512_and_si512(both, upper);
      const __m512 factors = scalesOf(weights, scales + (c * g.blocks + block) * g.scaleBytes,
                                      std::min(g.groupBlocks, g.blocks - block), places);
      for (size_t r = 0; r < kRows; ++r) {
        const uint8_t* inputs = numbers + r * g.stride + first;
        __m512i products =
            _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(inputs), even);
        products = _mm512_dpbusd_epi32(products, _mm512_loadu_si512(inputs + 64), odd);
        sums[r][c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products), factors, sums[r][c]);
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    // Rows are stored 128 higher than they are.
    const float zero = rows.zeroPoints[row + r] + 128.0f;
    for (size_t c = 0; c < kColumns; ++c)
      output[(row + r) * weights.columns + column + c] =
          rows.scales[row + r] *
          (_mm512_reduce_add_ps(sums[r][c]) / 16.0f - zero * weights.sums[column + c]);
  }
}

template <size_t kColumns>
void multiplyColumns(const Int4Weights& weights, const Geometry& geometry, const Int4Rows& rows,
                     size_t firstRow, size_t lastRow, size_t column, float* output) {
  size_t row = firstRow;
  for (; row + 4 <= lastRow; row += 4)
    multiplyTile<4, kColumns>(weights, geometry, rows, row, column, output);
  for (; row < lastRow; ++row)
    multiplyTile<1, kColumns>(weights, geometry, rows, row, column, output);
}

void multiplyOnVnni(const Int4Weights& weights, const Int4Rows& rows, size_t first, size_t last,
                    float* output) {
  const Geometry geometry(weights);
  // Rows that stay in the second-level cache while all columns pass.
  constexpr size_t kCache = size_t{512} << 10;
  const size_t blockRows = std::max<size_t>(4, kCache / int4RowBytes(weights.inputs) / 4 * 4);
  for (size_t firstRow = 0; firstRow < rows.count; firstRow += blockRows) {
    const size_t lastRow = std::min(rows.count, firstRow + blockRows);
    size_t column = first;
    // Several columns share what they load of the rows; one row is in the cache anyway, and memory
    // is read faster in one stream than in four.
    for (; rows.count > 1 && column + 4 <= last; column += 4)
      multiplyColumns<4>(weights, geometry, rows, firstRow, lastRow, column, output);
    for (; column < last; ++column)
      multiplyColumns<1>(weights, geometry, rows, firstRow, lastRow, column, output);
  }
}

}  // namespace

#else

namespace {
bool usesVnni(const Int4Weights&) {
  return false;
}
void multiplyOnVnni(const Int4Weights&, const Int4Rows&, size_t, size_t, float*) {}
}  // namespace

#endif

void int4Prepare(const int8_t* row, const Int4Weights& weights, uint8_t* prepared) {
  const size_t inputs = weights.inputs;
  if (!usesVnni(weights)) {
    std::memcpy(prepared, row, inputs);
    return;
  }
  // As unsigned numbers, for each group those with even places and then those with odd ones, as
  // the halves of the weights' bytes go.
  std::memset(prepared + inputs / kGroup * kGroup, 0,
              int4RowBytes(inputs) - inputs / kGroup * kGroup);
  for (size_t i = 0; i < inputs; ++i)
    prepared[i / kGroup * kGroup + i % 2 * (kGroup / 2) + i % kGroup / 2] =
        static_cast<uint8_t>(row[i] + 128);
}

void int4Multiply(const Int4Weights& weights, const Int4Rows& rows, size_t first, size_t last,
                  float* output) {
  if (usesVnni(weights))
    multiplyOnVnni(weights, rows, first, last, output);
  else
    multiplyPortably(weights, rows, first, last, output);
}

}  // namespace hearth::cpu
