// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/avx2/avx2_strassen.h"

#include <algorithm>
#include <cstring>

namespace hearth::cpu {
namespace {

constexpr size_t kPanel = Avx2Qd8Panels::kColumns;
constexpr size_t kGroup = Avx2Qd8Panels::kGroup;
constexpr size_t kGroupBytes = Avx2Qd8Panels::kGroupBytes;
constexpr size_t kVector = 16;  // numbers of 16 bits
constexpr size_t kQuadrants = 4;
constexpr size_t kProducts = 7;
constexpr size_t kHalf = kStrassenColumns / 2;  // columns of a quadrant
constexpr size_t kPanelsOfHalf = kHalf / kPanel;
constexpr size_t kMostRows = 6;  // that are multiplied together
// A factor is the sum of up to four numbers.
static_assert(4 * 128 <= INT16_MAX);
// Inputs that are multiplied before the next ones, so that weights stay in the first-level cache.
constexpr size_t kChunkGroups = 1024 / kGroup;
// Keeps quadrants from the same places of caches.
constexpr size_t kGap = 64 / sizeof(int16_t);

// A part of the inputs, whose halves are multiplied. Of the last one the second half may end behind
// the inputs; what is there counts as zero.
struct Chunk {
  size_t first = 0;   // group of 8 inputs
  size_t groups = 0;  // of each half; even, so that rows are whole vectors

  size_t inputs() const { return groups * kGroup; }           // of each half
  size_t weights() const { return inputs() * kHalf + kGap; }  // from one quadrant to the next
};

size_t chunksOf(const Avx2Qd8Panels& product) {
  return (product.groups() + kChunkGroups - 1) / kChunkGroups;
}
Chunk chunkOf(const Avx2Qd8Panels& product, size_t index) {
  const size_t first = index * kChunkGroups;
  const size_t groups = std::min(kChunkGroups, product.groups() - first);
  return {first, (groups + 3) / 4 * 2};
}

// Half of the rows. With an odd number the second half has one row more than there is.
size_t heightOf(size_t rows) {
  return (rows + 3) / 4 * 2;
}

// Numbers from one factor of the rows to the next.
size_t factorSize(const Chunk& chunk, size_t rows) {
  return heightOf(rows) * chunk.inputs() + kGap;
}

size_t sumsBytes(size_t rows) {
  return kProducts * heightOf(rows) * kHalf * sizeof(int32_t);
}

}  // namespace

size_t strassenRowBytes(const Avx2Qd8Panels& product, size_t rows) {
  size_t size = 0;
  for (size_t chunk = 0; chunk < chunksOf(product); ++chunk)
    size += kProducts * factorSize(chunkOf(product, chunk), rows);
  return size * sizeof(int16_t);
}

size_t strassenScratch(const Avx2Qd8Panels& product, size_t rows) {
  return sumsBytes(rows) + kProducts * chunkOf(product, 0).weights() * sizeof(int16_t);
}

size_t strassenSteps(const Avx2Qd8Panels& product, size_t rows) {
  return chunksOf(product) * heightOf(rows);
}

#if defined(__x86_64__)

namespace {

HEARTH_AVX2 __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
HEARTH_AVX2 void store(void* to, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), value);
}

// A matrix has the quadrants 0 and 1 above 2 and 3.

// The factors of the seven products that rows give.
HEARTH_AVX2 void rowFactors(const __m256i (&a)[kQuadrants], __m256i (&factors)[kProducts]) {
  const __m256i s1 = _mm256_add_epi16(a[2], a[3]);
  const __m256i s2 = _mm256_sub_epi16(s1, a[0]);
  factors[0] = a[0];
  factors[1] = a[1];
  factors[2] = _mm256_sub_epi16(a[1], s2);
  factors[3] = a[3];
  factors[4] = s1;
  factors[5] = s2;
  factors[6] = _mm256_sub_epi16(a[0], a[2]);
}

// Those that weights give.
HEARTH_AVX2 void weightFactors(const __m256i (&b)[kQuadrants], __m256i (&factors)[kProducts]) {
  const __m256i t1 = _mm256_sub_epi16(b[1], b[0]);
  const __m256i t2 = _mm256_sub_epi16(b[3], t1);
  factors[0] = b[0];
  factors[1] = b[2];
  factors[2] = b[3];
  factors[3] = _mm256_sub_epi16(t2, b[2]);
  factors[4] = t1;
  factors[5] = t2;
  factors[6] = _mm256_sub_epi16(b[3], b[1]);
}

// The quadrants of the result.
HEARTH_AVX2 void resultsOf(const __m256i (&p)[kProducts], __m256i (&results)[kQuadrants]) {
  const __m256i u2 = _mm256_add_epi32(p[0], p[5]);
  const __m256i u3 = _mm256_add_epi32(u2, p[6]);
  results[0] = _mm256_add_epi32(p[0], p[1]);
  results[1] = _mm256_add_epi32(_mm256_add_epi32(u2, p[4]), p[2]);
  results[2] = _mm256_sub_epi32(u3, p[3]);
  results[3] = _mm256_add_epi32(u3, p[4]);
}

// 16 numbers of a row from `input` on, as 16 bits. Behind the row they are zero.
HEARTH_AVX2 __m256i widenedRow(const int8_t* row, size_t input, size_t inputs) {
  if (input + kVector <= inputs)
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + input)));
  int8_t rest[kVector] = {};
  if (input < inputs) std::memcpy(rest, row + input, inputs - input);
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rest)));
}

// Writes the factors that a row of the upper half and one of the lower half give for a chunk.
HEARTH_AVX2_FUNCTION void prepareStep(const Avx2Qd8Panels& product, const int8_t* numbers,
                                      size_t rows, const Chunk& chunk, size_t row, int16_t* to) {
  const size_t size = factorSize(chunk, rows);
  to += row * chunk.inputs();
  for (size_t i = 0; i < chunk.inputs(); i += kVector) {
    __m256i quadrants[kQuadrants];
#pragma GCC unroll 4
    for (size_t q = 0; q < kQuadrants; ++q) {
      const size_t r = row + q / 2 * heightOf(rows);
      const size_t input = chunk.first * kGroup + q % 2 * chunk.inputs() + i;
      quadrants[q] = r < rows ? widenedRow(numbers + r * product.inputs, input, product.inputs)
                              : _mm256_setzero_si256();
    }
    __m256i factors[kProducts];
    rowFactors(quadrants, factors);
#pragma GCC unroll 7
    for (size_t p = 0; p < kProducts; ++p) store(to + p * size + i, factors[p]);
  }
}

// The weights of a panel's columns for 8 inputs as 16 bits: pairs of inputs, for each of them the
// columns in the order 0 1 4 5 2 3 6 7, which needs no exchange between halves of vectors.
HEARTH_AVX2 void widenWeights(const uint8_t* group, __m256i (&pairs)[kGroup / 2]) {
  // In each half of a vector: the first pair of two columns, then the next pairs.
  const __m256i order = _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 0, 1,
                                         8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
  const __m256i low = _mm256_shuffle_epi8(load(group), order);
  const __m256i high = _mm256_shuffle_epi8(load(group + kGroupBytes / 2), order);
  const __m256i first = _mm256_unpacklo_epi32(low, high);
  const __m256i last = _mm256_unpackhi_epi32(low, high);
  pairs[0] = _mm256_srai_epi16(_mm256_unpacklo_epi8(first, first), 8);
  pairs[1] = _mm256_srai_epi16(_mm256_unpackhi_epi8(first, first), 8);
  pairs[2] = _mm256_srai_epi16(_mm256_unpacklo_epi8(last, last), 8);
  pairs[3] = _mm256_srai_epi16(_mm256_unpackhi_epi8(last, last), 8);
}

// Writes the factors that a chunk's weights from panel `panel` on give. Each has for every pair of
// inputs the columns of half a block.
HEARTH_AVX2_FUNCTION void widenBlock(const Avx2Qd8Panels& product, size_t panel, const Chunk& chunk,
                                     int16_t* to) {
  static constexpr uint8_t kZeros[kGroupBytes] = {};
  constexpr size_t kPairs = kGroup / 2;
  const size_t groups = product.groups();
  const uint8_t* panels[2 * kPanelsOfHalf];
  for (size_t p = 0; p < 2 * kPanelsOfHalf; ++p)
    panels[p] = panel + p < product.panels() ? product.weights(panel + p) : nullptr;
  for (size_t g = 0; g < chunk.groups; ++g, to += kPairs * kHalf * 2) {
#pragma GCC unroll 2
    for (size_t half = 0; half < kPanelsOfHalf; ++half) {
      __m256i pairs[kQuadrants][kPairs];
#pragma GCC unroll 4
      for (size_t q = 0; q < kQuadrants; ++q) {
        const uint8_t* const from = panels[q % 2 * kPanelsOfHalf + half];
        const size_t group = chunk.first + q / 2 * chunk.groups + g;
        widenWeights(from != nullptr && group < groups ? from + group * kGroupBytes : kZeros,
                     pairs[q]);
      }
#pragma GCC unroll 4
      for (size_t pair = 0; pair < kPairs; ++pair) {
        const __m256i quadrants[kQuadrants] = {pairs[0][pair], pairs[1][pair], pairs[2][pair],
                                               pairs[3][pair]};
        __m256i factors[kProducts];
        weightFactors(quadrants, factors);
#pragma GCC unroll 7
        for (size_t p = 0; p < kProducts; ++p)
          store(to + p * chunk.weights() + (pair * kPanelsOfHalf + half) * kVector, factors[p]);
      }
    }
  }
}

// Fetches packed weights into the second-level cache, a few at a time.
class Fetch {
 public:
  // Those of a chunk from panel `panel` on, in so many calls of next().
  Fetch(const Avx2Qd8Panels& product, size_t panel, const Chunk& chunk, size_t times)
      : at_(product.weights(panel) + chunk.first * kGroupBytes),
        stride_(product.panelBytes()),
        lines_(std::min(2 * chunk.groups, product.groups() - chunk.first)),
        step_((2 * kPanelsOfHalf * lines_ + times - 1) / times),
        panels_(std::min(2 * kPanelsOfHalf, product.panels() - panel)) {}

  void next() {
    for (size_t i = 0; i < step_ && panels_ > 0; ++i) {
      _mm_prefetch(reinterpret_cast<const char*>(at_ + line_ * kGroupBytes), _MM_HINT_T1);
      if (++line_ < lines_) continue;
      line_ = 0;
      at_ += stride_;
      --panels_;
    }
  }

 private:
  const uint8_t* at_;
  const size_t stride_, lines_, step_;
  size_t panels_, line_ = 0;
};

// Multiplies kRows rows of a factor, of so many inputs each, by one of weights. The sums are added
// to `sums`, or if these are the `first` ones, put there.
template <size_t kRows>
HEARTH_AVX2_FUNCTION void multiplyTile(const int16_t* rows, size_t inputs, const int16_t* weights,
                                       bool isFirst, int32_t* sums) {
  // Steps of two inputs. Those of a loop together take a line of each four rows.
  constexpr size_t kSteps = 4;
  __m256i tile[kRows][2];
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; ++h)
      tile[r][h] = isFirst ? _mm256_setzero_si256() : load(sums + r * kHalf + h * kPanel);
  const int16_t* row[kRows];
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) row[r] = rows + r * inputs;
  // The next rows.
  const int16_t* const ahead = rows + kRows * inputs;
  for (size_t i = 0; i < inputs; i += 2 * kSteps) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead + kRows * i), _MM_HINT_T0);
    if constexpr (kRows > 4)
      _mm_prefetch(reinterpret_cast<const char*>(ahead + kRows * i + kGap), _MM_HINT_T0);
#pragma GCC unroll 4
    for (size_t step = 0; step < kSteps; ++step) {
      const __m256i halves[2] = {load(weights + 2 * step * kVector),
                                 load(weights + (2 * step + 1) * kVector)};
#pragma GCC unroll 6
      for (size_t r = 0; r < kRows; ++r) {
        int32_t pair;
        std::memcpy(&pair, row[r] + i + 2 * step, sizeof pair);
        const __m256i both = _mm256_set1_epi32(pair);
#pragma GCC unroll 2
        for (size_t h = 0; h < 2; ++h) {
          tile[r][h] = _mm256_add_epi32(tile[r][h], _mm256_madd_epi16(both, halves[h]));
          // Else g++ 14 adds the products of several steps first, and runs out of registers.
          asm("" : "+x"(tile[r][h]));
        }
      }
    }
    weights += 2 * kSteps * kVector;
  }
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; ++h) store(sums + r * kHalf + h * kPanel, tile[r][h]);
}

// Multiplies the factors of a chunk.
void multiplyChunk(const Chunk& chunk, const int16_t* rows, size_t rowsSize, const int16_t* weights,
                   size_t height, bool isFirst, int32_t* sums, Fetch* fetch) {
  const size_t inputs = chunk.inputs();
  for (size_t p = 0; p < kProducts; ++p) {
    size_t r = 0;
    for (; r + kMostRows <= height; r += kMostRows) {
      fetch->next();
      multiplyTile<kMostRows>(rows + r * inputs, inputs, weights, isFirst, sums + r * kHalf);
    }
    if (height - r == 4)
      multiplyTile<4>(rows + r * inputs, inputs, weights, isFirst, sums + r * kHalf);
    if (height - r == 2)
      multiplyTile<2>(rows + r * inputs, inputs, weights, isFirst, sums + r * kHalf);
    rows += rowsSize;
    weights += chunk.weights();
    sums += height * kHalf;
  }
}

// Writes the results of a block from the sums of its products.
HEARTH_AVX2_FUNCTION void writeBlock(const Avx2Qd8Panels& product, size_t firstPanel,
                                     const struct xnn_quantization_params* parameters, size_t rows,
                                     const int32_t* sums, float* output) {
  const size_t height = heightOf(rows);
  for (size_t half = 0; half < kPanelsOfHalf; ++half)
    for (size_t r = 0; r < height; ++r) {
      __m256i products[kProducts], results[kQuadrants];
#pragma GCC unroll 7
      for (size_t p = 0; p < kProducts; ++p)
        products[p] = load(sums + (p * height + r) * kHalf + half * kPanel);
      resultsOf(products, results);
#pragma GCC unroll 4
      for (size_t q = 0; q < kQuadrants; ++q) {
        const size_t row = r + q / 2 * height;
        const size_t panel = firstPanel + q % 2 * kPanelsOfHalf + half;
        if (row < rows && panel < product.panels())
          // The columns in order.
          writeQd8Results(product, panel, _mm256_permute4x64_epi64(results[q], 0xd8),
                          parameters[row], output + row * product.outputStride + panel * kPanel);
      }
    }
}

}  // namespace

void prepareStrassenRows(const Avx2Qd8Panels& product, const int8_t* numbers, size_t rows,
                         size_t firstStep, size_t lastStep, uint8_t* prepared) {
  const size_t height = heightOf(rows);
  auto* to = reinterpret_cast<int16_t*>(prepared);
  for (size_t c = 0; c < chunksOf(product); ++c) {
    const Chunk chunk = chunkOf(product, c);
    const size_t last = std::min(lastStep, (c + 1) * height);
    for (size_t step = std::max(firstStep, c * height); step < last; ++step)
      prepareStep(product, numbers, rows, chunk, step - c * height, to);
    to += kProducts * factorSize(chunk, rows);
  }
}

void multiplyStrassen(const Avx2Qd8Panels& product, const uint8_t* prepared,
                      const struct xnn_quantization_params* parameters, size_t rows,
                      size_t firstBlock, size_t lastBlock, uint8_t* scratch, float* output) {
  constexpr size_t kPanels = 2 * kPanelsOfHalf;
  const size_t height = heightOf(rows);
  const size_t chunks = chunksOf(product);
  auto* const sums = reinterpret_cast<int32_t*>(scratch);
  auto* const weights = reinterpret_cast<int16_t*>(scratch + sumsBytes(rows));
  for (size_t block = firstBlock; block < lastBlock; ++block) {
    const auto* factors = reinterpret_cast<const int16_t*>(prepared);
    for (size_t c = 0; c < chunks; ++c) {
      const Chunk chunk = chunkOf(product, c);
      widenBlock(product, block * kPanels, chunk, weights);
      const bool isLast = c + 1 == chunks;
      Fetch fetch(product, std::min((isLast ? block + 1 : block) * kPanels, product.panels()),
                  chunkOf(product, isLast ? 0 : c + 1),
                  std::max<size_t>(1, kProducts * (height / kMostRows)));
      multiplyChunk(chunk, factors, factorSize(chunk, rows), weights, height, c == 0, sums, &fetch);
      factors += kProducts * factorSize(chunk, rows);
    }
    writeBlock(product, block * kPanels, parameters, rows, sums, output);
  }
}

#else

void prepareStrassenRows(const Avx2Qd8Panels&, const int8_t*, size_t, size_t, size_t, uint8_t*) {}
void multiplyStrassen(const Avx2Qd8Panels&, const uint8_t*, const struct xnn_quantization_params*,
                      size_t, size_t, size_t, uint8_t*, float*) {}

#endif

}  // namespace hearth::cpu
