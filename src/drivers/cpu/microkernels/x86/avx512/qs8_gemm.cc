// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/avx512/qs8_gemm.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "drivers/cpu/microkernels/x86/avx512/qu8_gemm.h"

#if defined(__x86_64__)
#include "drivers/cpu/microkernels/x86/avx512/vnni_vectors.h"
#endif

namespace hearth::cpu {

#if defined(__x86_64__)

namespace {

using Vector = WholeVector;

// The first sums of 8 columns: each has two lanes, for the first and the last four inputs of
// groups. The first lane begins with the bias, the other with zero.
HEARTH_VNNI Vector::Ints startOf(const uint8_t* bias) {
  return _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bias)));
}

// Adds the two lanes of each of 16 columns.
HEARTH_VNNI Vector::Ints sumsOf(Vector::Ints first, Vector::Ints last) {
  const Vector::Ints even =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const Vector::Ints odd =
      _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_add_epi32(_mm512_permutex2var_epi32(first, even, last),
                          _mm512_permutex2var_epi32(first, odd, last));
}

// Rows as one block of memory: row r lies `stride` bytes after row r - 1.
struct WholeRows {
  const uint8_t* first;
  size_t stride;
  size_t inputs;

  WholeRows from(size_t row) const { return {first + row * stride, stride, inputs}; }
  size_t pieces() const { return 1; }
  size_t pieceBytes() const { return inputs; }
  HEARTH_VNNI const uint8_t* at(size_t row, size_t) const { return first + row * stride; }
};

// Rows in pieces: piece p of row r is at rows[r] + places[p].
struct RowsInPieces {
  const uint8_t* const* rows;
  std::span<const size_t> places;
  size_t bytes;

  RowsInPieces from(size_t row) const { return {rows + row, places, bytes}; }
  size_t pieces() const { return places.size(); }
  size_t pieceBytes() const { return bytes; }
  HEARTH_VNNI const uint8_t* at(size_t row, size_t piece) const {
    return rows[row] + places[piece];
  }
};

// Multiplies kRows rows by kPanels panels, of which the last may be partly padding. All loops over
// them are unrolled: the sums live in registers.
template <size_t kRows, size_t kPanels, typename Rows>
HEARTH_VNNI_FUNCTION void multiplyTile(const Qs8Gemm& product, const Rows& rows,
                                       const uint8_t* panel, size_t columns, int8_t* output) {
  // Vectors with the weights of 8 columns.
  constexpr size_t kHalves = 2 * kPanels;
  const size_t panelBytes = product.panelBytes();
  Vector::Ints sums[kRows][kHalves];
#pragma GCC unroll 4
  for (size_t h = 0; h < kHalves; ++h) {
    const Vector::Ints bias = startOf(panel + h / 2 * panelBytes + h % 2 * (Vector::kBytes / 2));
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) sums[r][h] = bias;
  }
  const uint8_t* weights = panel + Vector::kBytes;
  const size_t pieceBytes = rows.pieceBytes();
  for (size_t piece = 0; piece < rows.pieces(); ++piece) {
    const uint8_t* at[kRows];
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r) at[r] = rows.at(r, piece);
    for (size_t i = 0; i < pieceBytes; i += kQs8Group, weights += 2 * Vector::kBytes) {
      Vector::Ints factors[kHalves];
#pragma GCC unroll 4
      for (size_t h = 0; h < kHalves; ++h)
        factors[h] = Vector::load(weights + h / 2 * panelBytes + h % 2 * Vector::kBytes);
#pragma GCC unroll 12
      for (size_t r = 0; r < kRows; ++r) {
        int64_t group;
        std::memcpy(&group, at[r] + i, sizeof group);
        const Vector::Ints inputs = _mm512_set1_epi64(group);
#pragma GCC unroll 4
        for (size_t h = 0; h < kHalves; ++h) Vector::dot(sums[r][h], inputs, factors[h]);
      }
    }
  }
  const auto ceiling = Vector::ofFloats(static_cast<float>(product.highest - product.outputZero));
  const Vector::Ints zeroWords = Vector::ofWords(static_cast<int16_t>(product.outputZero));
  const Vector::Ints lowestBytes = Vector::ofBytes(static_cast<int8_t>(product.lowest));
  // Narrowing puts 4 bytes of each panel next to each other; this restores the order of columns.
  const Vector::Ints order =
      _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) {
    Vector::Ints steps[4];
#pragma GCC unroll 4
    for (size_t p = 0; p < 4; ++p)
      // `weights` has reached the factors behind the weights.
      steps[p] = p < kPanels ? Vector::scaled(sumsOf(sums[r][2 * p], sums[r][2 * p + 1]),
                                              Vector::loadFloats(weights + p * panelBytes), ceiling)
                             : steps[0];
    const Vector::Ints bytes =
        _mm512_permutexvar_epi32(order, Vector::narrowed(steps, zeroWords, lowestBytes));
    Vector::store(output + r * product.outputStride, bytes,
                  std::min(columns, kPanels * kQs8Columns));
  }
}

template <size_t kRows, size_t kPanels, typename Rows>
void multiplyRows(const Qs8Gemm& product, Rows rows, size_t count, const uint8_t* panel,
                  size_t columns, int8_t* output) {
  for (; count >= kRows; count -= kRows) {
    multiplyTile<kRows, kPanels>(product, rows, panel, columns, output);
    rows = rows.from(kRows);
    output += kRows * product.outputStride;
  }
  if constexpr (kRows > 1) {
    // The rest goes to kernels of half as many rows, so that few kernels suffice.
    if (count > 0) multiplyRows<kRows / 2, kPanels>(product, rows, count, panel, columns, output);
  }
}

template <typename Rows>
void multiplyPanels(const Qs8Gemm& product, const Rows& rows, size_t count, size_t firstPanel,
                    size_t lastPanel, int8_t* output) {
  // At most this many panels are multiplied together.
  constexpr size_t kMostPanels = 2;
  const size_t times = (lastPanel - firstPanel + kMostPanels - 1) / kMostPanels;
  for (size_t i = 0; i < times; ++i) {
    const size_t all = lastPanel - firstPanel;
    const size_t first = firstPanel + i * all / times;
    const size_t panels = firstPanel + (i + 1) * all / times - first;
    const uint8_t* const panel = product.packed + first * product.panelBytes();
    const size_t columns = product.columns - first * kQs8Columns;
    int8_t* const at = output + first * kQs8Columns;
    if (panels == 1)
      multiplyRows<12, 1>(product, rows, count, panel, columns, at);
    else
      multiplyRows<6, 2>(product, rows, count, panel, columns, at);
  }
}

}  // namespace

HEARTH_VNNI_FUNCTION void makeUnsigned(const int8_t* from, size_t count, uint8_t* to) {
  const Vector::Ints flip = Vector::ofBytes(-128);
  for (; count >= Vector::kBytes; count -= Vector::kBytes) {
    Vector::store(to, Vector::exclusiveOr(Vector::load(from), flip));
    from += Vector::kBytes;
    to += Vector::kBytes;
  }
  if (count > 0) Vector::store(to, Vector::exclusiveOr(Vector::load(from, count), flip), count);
}

void multiplyQs8(const Qs8Gemm& product, const uint8_t* rows, size_t stride, size_t count,
                 size_t firstPanel, size_t lastPanel, int8_t* output) {
  multiplyPanels(product, WholeRows{rows, stride, product.inputs}, count, firstPanel, lastPanel,
                 output);
}

void multiplyQs8(const Qs8Gemm& product, std::span<const uint8_t* const> rows,
                 std::span<const size_t> places, size_t pieceBytes, size_t firstPanel,
                 size_t lastPanel, int8_t* output) {
  multiplyPanels(product, RowsInPieces{rows.data(), places, pieceBytes}, rows.size(), firstPanel,
                 lastPanel, output);
}

#else

void makeUnsigned(const int8_t*, size_t, uint8_t*) {}
void multiplyQs8(const Qs8Gemm&, const uint8_t*, size_t, size_t, size_t, size_t, int8_t*) {}
void multiplyQs8(const Qs8Gemm&, std::span<const uint8_t* const>, std::span<const size_t>, size_t,
                 size_t, size_t, int8_t*) {}

#endif

}  // namespace hearth::cpu
