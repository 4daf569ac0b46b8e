// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/avx2/avx2_gemm.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)

#include "drivers/cpu/microkernels/x86/avx2/avx2_narrowing.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_vectors.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#endif

namespace hearth::cpu {

size_t avx2RowBytes(Avx2Form form, size_t inputs) {
  return avx2PaddedInputs(inputs) * (form == Avx2Form::kWords ? sizeof(int16_t) : 1);
}

#if defined(__x86_64__)

namespace {

constexpr size_t kVectorBytes = 32;
constexpr size_t kGroupBytes = kAvx2Columns * kAvx2Group;
constexpr size_t kHeadBytes = 3 * kAvx2Columns * sizeof(float);

HEARTH_AVX2 __m256i load(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
HEARTH_AVX2 __m256 loadFloats(const uint8_t* from) {
  return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
}
HEARTH_AVX2 __m256i fourBytes(const uint8_t* from) {
  int32_t value;
  std::memcpy(&value, from, sizeof value);
  return _mm256_set1_epi32(value);
}
HEARTH_AVX2 __m256i sixteenBytes(const uint8_t* from) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

// A single row reads each weight once, and the CPU alone does not fetch them early enough.
template <size_t kRows>
HEARTH_AVX2 void fetchAhead(const uint8_t* weights) {
  constexpr size_t kAhead = 2048;
  if constexpr (kRows == 1)
    _mm_prefetch(reinterpret_cast<const char*>(weights + kAhead), _MM_HINT_T0);
}

// The sums of kRows rows and the two halves of a panel.
template <size_t kRows>
using Sums = __m256i[kRows][2];

// The forms' inner loops. They add the products of kRows prepared rows, of which there are up to
// kMostRows, and the weights of a panel, or of its first half alone, to the sums, which live in
// registers.
struct Quads {
  // With more rows g++ 14 keeps sums in memory, because it loads the weights first.
  static constexpr size_t kMostRows = 4;
  static constexpr size_t kBytesPerInput = 1;

  template <size_t kRows, size_t kHalves>
  HEARTH_AVX2 static void add(Sums<kRows>& sums, const uint8_t* rows, size_t stride,
                              const uint8_t* weights, size_t inputs) {
    const __m256i ones = _mm256_set1_epi16(1);
    for (size_t i = 0; i < inputs; i += 2 * kAvx2Group, weights += 2 * kGroupBytes) {
      fetchAhead<kRows>(weights);
      fetchAhead<kRows>(weights + kGroupBytes);
#pragma GCC unroll 6
      for (size_t r = 0; r < kRows; ++r) {
        const __m256i first = fourBytes(rows + r * stride + i);
        const __m256i last = fourBytes(rows + r * stride + i + kAvx2Group);
#pragma GCC unroll 2
        for (size_t h = 0; h < kHalves; ++h) {
          const __m256i words = _mm256_add_epi16(
              _mm256_maddubs_epi16(first, load(weights + h * kVectorBytes)),
              _mm256_maddubs_epi16(last, load(weights + kGroupBytes + h * kVectorBytes)));
          sums[r][h] = _mm256_add_epi32(sums[r][h], _mm256_madd_epi16(words, ones));
        }
      }
    }
  }
};

struct Words {
  static constexpr size_t kMostRows = 6;
  static constexpr size_t kBytesPerInput = 2;

  template <size_t kRows, size_t kHalves>
  HEARTH_AVX2 static void add(Sums<kRows>& sums, const uint8_t* rows, size_t stride,
                              const uint8_t* weights, size_t inputs) {
    // Of each group a prepared row has the inputs 0 and 2, then 1 and 3.
    constexpr size_t kPair = 2 * sizeof(int16_t);
    for (size_t i = 0; i < inputs; i += kAvx2Group, weights += kGroupBytes, rows += 2 * kPair) {
      fetchAhead<kRows>(weights);
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) {
        const __m256i bytes = load(weights + h * kVectorBytes);
        const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8);
        const __m256i odd = _mm256_srai_epi16(bytes, 8);
#pragma GCC unroll 6
        for (size_t r = 0; r < kRows; ++r) {
          sums[r][h] =
              _mm256_add_epi32(sums[r][h], _mm256_madd_epi16(fourBytes(rows + r * stride), even));
          sums[r][h] = _mm256_add_epi32(
              sums[r][h], _mm256_madd_epi16(fourBytes(rows + r * stride + kPair), odd));
        }
      }
    }
  }
};

// The instruction of AVX-VNNI. Its name is for the assembler alone: programs that run on any AVX2
// contain it.
struct DotInstruction {
  HEARTH_AVX2 static void dot(__m256i& sums, __m256i inputs, __m256i weights) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(inputs), "xm"(weights));
  }
};

// The same of instructions that AVX2 has.
struct ComputedDot {
  HEARTH_AVX2 static void dot(__m256i& sums, __m256i inputs, __m256i weights) {
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(inputs, _mm256_set1_epi16(0xff)),
                                           _mm256_srai_epi16(_mm256_slli_epi16(weights, 8), 8));
    const __m256i odd =
        _mm256_madd_epi16(_mm256_srli_epi16(inputs, 8), _mm256_srai_epi16(weights, 8));
    sums = _mm256_add_epi32(sums, _mm256_add_epi32(even, odd));
  }
};

template <typename Dot>
struct Dots {
  static constexpr size_t kMostRows = 6;
  static constexpr size_t kBytesPerInput = 1;

  template <size_t kRows, size_t kHalves>
  HEARTH_AVX2 static void add(Sums<kRows>& sums, const uint8_t* rows, size_t stride,
                              const uint8_t* weights, size_t inputs) {
    for (size_t i = 0; i < inputs; i += kAvx2Group, weights += kGroupBytes) {
      fetchAhead<kRows>(weights);
      const __m256i halves[2] = {load(weights), load(weights + kVectorBytes)};
#pragma GCC unroll 6
      for (size_t r = 0; r < kRows; ++r) {
        const __m256i four = fourBytes(rows + r * stride + i);
#pragma GCC unroll 2
        for (size_t h = 0; h < kHalves; ++h) Dot::dot(sums[r][h], four, halves[h]);
      }
    }
  }
};

// Adds the corrections of one half of a panel. kHasHighInputs: windows are longer than their first
// half.
template <size_t kRows, size_t kHalf, bool kHasHighInputs>
HEARTH_AVX2 void addCorrections(Sums<kRows>& sums, const uint8_t* rows, size_t stride,
                                size_t inputs, const Avx2Panel& panel) {
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i otherHalf = _mm256_set1_epi8(-128);
  const size_t before = kHalf == 0 ? 0 : panel.counts[0];
  const uint8_t* correction = panel.corrections + before * 2 * kVectorBytes;
  const uint8_t* place = panel.windows + before * sizeof(uint32_t);
  const size_t lastWindow = (inputs - 1) / kAvx2Window;
  for (size_t i = 0; i < panel.counts[kHalf]; ++i) {
    uint32_t window;
    std::memcpy(&window, place + i * sizeof window, sizeof window);
    const uint8_t* const at = rows + std::min<size_t>(window, lastWindow) * kAvx2Window;
    const __m256i low = load(correction);
    const __m256i high = _mm256_xor_si256(low, otherHalf);
    const __m256i weights = load(correction + kVectorBytes);
    correction += 2 * kVectorBytes;
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r) {
      __m256i chosen = _mm256_shuffle_epi8(sixteenBytes(at + r * stride), low);
      if constexpr (kHasHighInputs)
        chosen = _mm256_or_si256(
            chosen, _mm256_shuffle_epi8(sixteenBytes(at + r * stride + kAvx2Window / 2), high));
      sums[r][kHalf] = _mm256_add_epi32(
          sums[r][kHalf], _mm256_madd_epi16(_mm256_maddubs_epi16(chosen, weights), ones));
    }
  }
}

template <size_t kRows, size_t kHalves>
HEARTH_AVX2 void addAllCorrections(Sums<kRows>& sums, const uint8_t* rows, size_t stride,
                                   size_t inputs, const Avx2Panel& panel) {
  if (inputs <= kAvx2Window / 2) {
    addCorrections<kRows, 0, false>(sums, rows, stride, inputs, panel);
    if constexpr (kHalves > 1) addCorrections<kRows, 1, false>(sums, rows, stride, inputs, panel);
  } else {
    addCorrections<kRows, 0, true>(sums, rows, stride, inputs, panel);
    if constexpr (kHalves > 1) addCorrections<kRows, 1, true>(sums, rows, stride, inputs, panel);
  }
}

template <bool kIsSigned>
struct Bytes {
  Avx2Narrowing<kIsSigned> narrowing;
  size_t stride;
  uint8_t* output;  // of the first row and the panel's first column

  HEARTH_AVX2 static __m256i start(const uint8_t* constants) { return load(constants); }

  template <size_t kRows>
  HEARTH_AVX2 void write(size_t row, const Sums<kRows>& sums, const uint8_t* head,
                         size_t columns) const {
    const uint8_t* const factors = head + kAvx2Columns * sizeof(int32_t);
    uint8_t* const at = output + row * stride;
#pragma GCC unroll 3
    for (size_t r = 0; r + 1 < kRows; r += 2) {
      const __m256i bytes =
          narrowing.bytes(narrowing.words(sums[r], factors), narrowing.words(sums[r + 1], factors));
      narrowing.store(at + r * stride, _mm256_castsi256_si128(bytes), columns);
      narrowing.store(at + (r + 1) * stride, _mm256_extracti128_si256(bytes, 1), columns);
    }
    if constexpr (kRows % 2 != 0) {
      const __m256i last = narrowing.words(sums[kRows - 1], factors);
      narrowing.store(at + (kRows - 1) * stride,
                      _mm256_castsi256_si128(narrowing.bytes(last, last)), columns);
    }
  }
};

// Results as float32, computed in XNNPACK's order.
struct Floats {
  const Avx2HybridGemm& product;
  const struct xnn_quantization_params* parameters;  // of the rows
  float* output;                                     // as in Bytes

  HEARTH_AVX2 static __m256i start(const uint8_t*) { return _mm256_setzero_si256(); }

  template <size_t kRows>
  HEARTH_AVX2 void write(size_t row, const Sums<kRows>& sums, const uint8_t* head,
                         size_t columns) const {
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r) writeRow(row + r, sums[r], head, columns);
  }

 private:
  HEARTH_AVX2 void writeRow(size_t row, const __m256i (&sums)[2], const uint8_t* head,
                            size_t columns) const {
    const __m256i zeroPoint = _mm256_set1_epi32(parameters[row].zero_point + 128);
    const __m256 rowScale = _mm256_set1_ps(parameters[row].scale);
    float last[kAvx2Columns];
    float* const at = output + row * product.outputStride;
    float* const to = columns >= kAvx2Columns ? at : last;
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; ++h) {
      const uint8_t* const half = head + h * kVectorBytes;
      const __m256i sum = _mm256_add_epi32(sums[h], _mm256_mullo_epi32(load(half), zeroPoint));
      const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), rowScale);
      const __m256 value = _mm256_fmadd_ps(scaled, loadFloats(half + kAvx2Columns * sizeof(float)),
                                           loadFloats(half + 2 * kAvx2Columns * sizeof(float)));
      // In this order a NaN stays a NaN.
      const __m256 raised = _mm256_max_ps(_mm256_set1_ps(product.lowest), value);
      _mm256_storeu_ps(to + h * kAvx2Half, _mm256_min_ps(_mm256_set1_ps(product.highest), raised));
    }
    if (to == last) std::memcpy(at, last, columns * sizeof(float));
  }
};

template <typename Form, size_t kRows, size_t kHalves, typename Output>
HEARTH_AVX2_FUNCTION void multiplyTile(const Avx2Panel& panel, size_t inputs, const uint8_t* rows,
                                       size_t firstRow, size_t columns, const Output& output) {
  const size_t stride = inputs * Form::kBytesPerInput;
  rows += firstRow * stride;
  Sums<kRows> sums;
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
    sums[r][0] = Output::start(panel.data);
    sums[r][1] = Output::start(panel.data + kVectorBytes);
  }
  Form::template add<kRows, kHalves>(sums, rows, stride, panel.data + kHeadBytes, inputs);
  if constexpr (Form::kBytesPerInput == 1)
    addAllCorrections<kRows, kHalves>(sums, rows, stride, inputs, panel);
  // A copy, so that what is written cannot change it.
  const Output own = output;
  own.template write<kRows>(firstRow, sums, panel.data, columns);
}

// Bytes that are fetched into the second-level cache beside the work of one tile each time.
class Fetch {
 public:
  Fetch(const uint8_t* from, size_t bytes, size_t times)
      : at_(from), end_(from + bytes), step_(bytes / std::max<size_t>(times, 1)) {}

  HEARTH_AVX2 void next() {
    const uint8_t* const to = at_ + std::min<size_t>(step_, static_cast<size_t>(end_ - at_));
    for (; at_ < to; at_ += kAvx2LineBytes)
      _mm_prefetch(reinterpret_cast<const char*>(at_), _MM_HINT_T1);
  }

 private:
  const uint8_t* at_;
  const uint8_t* const end_;
  const size_t step_;
};

// Multiplies the rows from `row` on; `inputs` are padded. kHalves of the panel have columns.
template <typename Form, size_t kRows, size_t kHalves, typename Output>
HEARTH_AVX2_FUNCTION void multiplyRows(const Avx2Panel& panel, size_t inputs, const uint8_t* rows,
                                       size_t row, size_t count, size_t columns,
                                       const Output& output, Fetch* fetch) {
  for (; row + kRows <= count; row += kRows) {
    fetch->next();
    multiplyTile<Form, kRows, kHalves>(panel, inputs, rows, row, columns, output);
  }
  if constexpr (kRows > 1) {
    // The rest goes to kernels of half as many rows, so that few kernels suffice.
    if (row < count)
      multiplyRows<Form, kRows / 2, 2>(panel, inputs, rows, row, count, columns, output, fetch);
  }
}

constexpr size_t kFewestRowsToFetch = 16;

size_t bytesOf(const Avx2Panel& panel) {
  const size_t corrections = size_t{panel.counts[0]} + panel.counts[1];
  return static_cast<size_t>(panel.windows - panel.data) + corrections * sizeof(uint32_t);
}

// Calls outputOf(column) for what becomes of a panel's results.
template <typename Form, typename OutputOf>
void multiplyPanels(const Avx2Panels& weights, const uint8_t* rows, size_t count, size_t firstPanel,
                    size_t lastPanel, const OutputOf& outputOf) {
  const size_t inputs = avx2PaddedInputs(weights.inputs());
  for (size_t p = firstPanel; p < lastPanel; ++p) {
    const size_t column = p * kAvx2Columns;
    // The next panel. A few rows do not take long enough for it.
    const bool fetches = p + 1 < lastPanel && count >= kFewestRowsToFetch;
    const Avx2Panel& next = weights.panel(fetches ? p + 1 : p);
    Fetch fetch(next.data, fetches ? bytesOf(next) : 0, count / Form::kMostRows);
    const size_t columns = weights.columns() - column;
    using Output = decltype(outputOf(column));
    const auto multiply = columns <= kAvx2Half ? multiplyRows<Form, Form::kMostRows, 1, Output>
                                               : multiplyRows<Form, Form::kMostRows, 2, Output>;
    multiply(weights.panel(p), inputs, rows, 0, count, columns, outputOf(column), &fetch);
  }
}

template <typename OutputOf>
void multiplyAny(const Avx2Panels& weights, bool hasDotInstruction, const uint8_t* rows,
                 size_t count, size_t firstPanel, size_t lastPanel, const OutputOf& outputOf) {
  switch (weights.form()) {
    case Avx2Form::kQuads:
      return multiplyPanels<Quads>(weights, rows, count, firstPanel, lastPanel, outputOf);
    case Avx2Form::kWords:
      return multiplyPanels<Words>(weights, rows, count, firstPanel, lastPanel, outputOf);
    case Avx2Form::kDots:
      if (hasDotInstruction)
        return multiplyPanels<Dots<DotInstruction>>(weights, rows, count, firstPanel, lastPanel,
                                                    outputOf);
      return multiplyPanels<Dots<ComputedDot>>(weights, rows, count, firstPanel, lastPanel,
                                               outputOf);
  }
}

HEARTH_AVX2_FUNCTION void prepareBytes(const uint8_t* from, size_t count, uint8_t flip,
                                       uint8_t* to) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  for (; count >= kVectorBytes; count -= kVectorBytes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_xor_si256(load(from), flips));
    from += kVectorBytes;
    to += kVectorBytes;
  }
  for (; count > 0; --count) *to++ = *from++ ^ flip;
}

// Of each group the inputs 0 and 2 as words, then 1 and 3.
HEARTH_AVX2_FUNCTION void prepareWords(const uint8_t* from, size_t count, uint8_t flip,
                                       uint8_t* to) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  const __m256i lowBytes = _mm256_set1_epi16(0xff);
  for (; count >= kVectorBytes; count -= kVectorBytes) {
    const __m256i bytes = _mm256_xor_si256(load(from), flips);
    const __m256i even = _mm256_and_si256(bytes, lowBytes);
    const __m256i odd = _mm256_srli_epi16(bytes, 8);
    const __m256i low = _mm256_unpacklo_epi32(even, odd);
    const __m256i high = _mm256_unpackhi_epi32(even, odd);
    auto* const out = reinterpret_cast<__m256i*>(to);
    _mm256_storeu_si256(out, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(low, high, 0x31));
    from += kVectorBytes;
    to += 2 * kVectorBytes;
  }
  for (size_t i = 0; i < count; ++i) {
    const auto word = static_cast<uint16_t>(from[i] ^ flip);
    const size_t place = i % kAvx2Group % 2 * 2 + i % kAvx2Group / 2;
    std::memcpy(to + (i / kAvx2Group * kAvx2Group + place) * sizeof word, &word, sizeof word);
  }
}

}  // namespace

void prepareAvx2Rows(Avx2Form form, const uint8_t* rows, size_t stride, size_t count, size_t inputs,
                     uint8_t flip, uint8_t* prepared) {
  const size_t bytes = avx2RowBytes(form, inputs);
  if (rows == prepared) {
    if (flip != 0) prepareBytes(rows, count * bytes, flip, prepared);
    return;
  }
  // Rows without gaps are one long row.
  if (stride == inputs && inputs % kAvx2InputStep == 0) {
    inputs *= count;
    count = std::min<size_t>(count, 1);
  }
  for (size_t r = 0; r < count; ++r) {
    uint8_t* const row = prepared + r * bytes;
    if (inputs % kAvx2InputStep != 0) {
      // The padding, whose weights are zero.
      std::memset(row + bytes - bytes / avx2PaddedInputs(inputs) * kAvx2InputStep, 0,
                  bytes / avx2PaddedInputs(inputs) * kAvx2InputStep);
    }
    if (form == Avx2Form::kWords)
      prepareWords(rows + r * stride, inputs, flip, row);
    else
      prepareBytes(rows + r * stride, inputs, flip, row);
  }
}

void multiplyAvx2(const Avx2Gemm& product, const uint8_t* prepared, size_t count, size_t firstPanel,
                  size_t lastPanel, uint8_t* output) {
  const auto multiply = [&]<bool kIsSigned>(Avx2Narrowing<kIsSigned> narrowing) {
    multiplyAny(product.weights, product.hasDotInstruction, prepared, count, firstPanel, lastPanel,
                [&](size_t column) {
                  return Bytes<kIsSigned>{narrowing, product.outputStride, output + column};
                });
  };
  if (product.output == Avx2Output::kInt8)
    multiply(Avx2Narrowing<true>(product.outputZero, product.lowest, product.highest));
  else
    multiply(Avx2Narrowing<false>(product.outputZero, product.lowest, product.highest));
}

void multiplyAvx2Hybrid(const Avx2HybridGemm& product, const uint8_t* prepared,
                        const struct xnn_quantization_params* parameters, size_t count,
                        size_t firstPanel, size_t lastPanel, float* output) {
  multiplyAny(product.weights, hasAvxVnni(), prepared, count, firstPanel, lastPanel,
              [&](size_t column) { return Floats{product, parameters, output + column}; });
}

#else

void prepareAvx2Rows(Avx2Form, const uint8_t*, size_t, size_t, size_t, uint8_t, uint8_t*) {}
void multiplyAvx2(const Avx2Gemm&, const uint8_t*, size_t, size_t, size_t, uint8_t*) {}
void multiplyAvx2Hybrid(const Avx2HybridGemm&, const uint8_t*,
                        const struct xnn_quantization_params*, size_t, size_t, size_t, float*) {}

#endif

}  // namespace hearth::cpu
