// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/x86/byte_add.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include "drivers/cpu/microkernels/x86/avx2/avx2_vectors.h"
#include "drivers/cpu/microkernels/x86/avx512/vnni_vectors.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#endif

namespace hearth::cpu {

ByteAdd::ByteAdd(const Quantization& a, const Quantization& b, const Quantization& sum,
                 bool isSigned) {
  const float scaleA = a.scale / sum.scale;
  const float scaleB = b.scale / sum.scale;
  // The larger factor has 21 bits.
  constexpr int kFactorBits = 20;
  shift_ = kFactorBits - std::ilogb(std::max(scaleA, scaleB));
  const auto factorA = static_cast<int32_t>(std::lrint(std::ldexp(scaleA, shift_)));
  const auto factorB = static_cast<int32_t>(std::lrint(std::ldexp(scaleB, shift_)));
  const auto pairOf = [](int32_t ofA, int32_t ofB) {
    return static_cast<Pair>(ofA) | static_cast<Pair>(ofB) << 16;
  };
  multiples_ = pairOf(factorA >> 8, factorB >> 8);
  rests_ = pairOf(factorA & 0xff, factorB & 0xff);
  const int32_t toSigned = isSigned ? 0 : 128;
  bias_ =
      (1 << (shift_ - 1)) - factorA * (a.zeroPoint - toSigned) - factorB * (b.zeroPoint - toSigned);
  zeroPoint_ = static_cast<int16_t>(sum.zeroPoint - toSigned);
  flip_ = isSigned ? 0 : 0x80;
}

#if defined(__x86_64__)

// Both give the sums of a whole vector. A number of `a` and its partner of `b` become the upper
// bytes of two words.
struct ByteAddOnAvx512 {
  static constexpr size_t kBytes = 64;
  const __m512i multiples, rests, bias, shift, zeroPoint, flip;

  HEARTH_VNNI explicit ByteAddOnAvx512(const ByteAdd& add)
      : multiples(_mm512_set1_epi32(static_cast<int32_t>(add.multiples_))),
        // The lower bytes of words are zero, so these stand for the upper ones.
        rests(_mm512_set1_epi32(static_cast<int32_t>(add.rests_ << 8))),
        bias(_mm512_set1_epi32(add.bias_)),
        shift(_mm512_set1_epi32(add.shift_)),
        zeroPoint(_mm512_set1_epi16(add.zeroPoint_)),
        flip(_mm512_set1_epi8(static_cast<int8_t>(add.flip_))) {}

  HEARTH_VNNI __m512i stepsOf(__m512i words) const {
    const __m512i upper = _mm512_dpwssd_epi32(bias, words, multiples);
    return _mm512_srav_epi32(_mm512_dpbusd_epi32(upper, rests, words), shift);
  }
  // The sums of 32 numbers, whose pairs are in `pairs`, as words.
  HEARTH_VNNI __m512i sumsOf(__m512i pairs) const {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i steps = _mm512_packs_epi32(stepsOf(_mm512_unpacklo_epi8(zero, pairs)),
                                             stepsOf(_mm512_unpackhi_epi8(zero, pairs)));
    return _mm512_adds_epi16(steps, zeroPoint);
  }
  HEARTH_VNNI void run(const uint8_t* a, const uint8_t* b, uint8_t* sum) const {
    const __m512i numbersA = _mm512_xor_si512(_mm512_loadu_si512(a), flip);
    const __m512i numbersB = _mm512_xor_si512(_mm512_loadu_si512(b), flip);
    const __m512i bytes = _mm512_packs_epi16(sumsOf(_mm512_unpacklo_epi8(numbersA, numbersB)),
                                             sumsOf(_mm512_unpackhi_epi8(numbersA, numbersB)));
    _mm512_storeu_si512(sum, _mm512_xor_si512(bytes, flip));
  }
};

struct ByteAddOnAvx2 {
  static constexpr size_t kBytes = 32;
  const __m256i multiples, rests, bias, shift, zeroPoint, flip;

  HEARTH_AVX2 explicit ByteAddOnAvx2(const ByteAdd& add)
      : multiples(_mm256_set1_epi32(static_cast<int32_t>(add.multiples_))),
        rests(_mm256_set1_epi32(static_cast<int32_t>(add.rests_))),
        bias(_mm256_set1_epi32(add.bias_)),
        shift(_mm256_set1_epi32(add.shift_)),
        zeroPoint(_mm256_set1_epi16(add.zeroPoint_)),
        flip(_mm256_set1_epi8(static_cast<int8_t>(add.flip_))) {}

  HEARTH_AVX2 __m256i stepsOf(__m256i words) const {
    const __m256i upper = _mm256_add_epi32(bias, _mm256_madd_epi16(words, multiples));
    const __m256i lower = _mm256_madd_epi16(_mm256_srai_epi16(words, 8), rests);
    return _mm256_srav_epi32(_mm256_add_epi32(upper, lower), shift);
  }
  HEARTH_AVX2 __m256i sumsOf(__m256i pairs) const {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i steps = _mm256_packs_epi32(stepsOf(_mm256_unpacklo_epi8(zero, pairs)),
                                             stepsOf(_mm256_unpackhi_epi8(zero, pairs)));
    return _mm256_adds_epi16(steps, zeroPoint);
  }
  HEARTH_AVX2 static __m256i load(const uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  HEARTH_AVX2 void run(const uint8_t* a, const uint8_t* b, uint8_t* sum) const {
    const __m256i numbersA = _mm256_xor_si256(load(a), flip);
    const __m256i numbersB = _mm256_xor_si256(load(b), flip);
    const __m256i bytes = _mm256_packs_epi16(sumsOf(_mm256_unpacklo_epi8(numbersA, numbersB)),
                                             sumsOf(_mm256_unpackhi_epi8(numbersA, numbersB)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sum), _mm256_xor_si256(bytes, flip));
  }
};

namespace {

// A multiple of the lengths of both vectors.
constexpr size_t kWhole = ByteAddOnAvx512::kBytes;

// Add a multiple of kWhole numbers.
HEARTH_VNNI_FUNCTION void addOnAvx512(const ByteAdd& add, const uint8_t* a, const uint8_t* b,
                                      size_t count, uint8_t* sum) {
  const ByteAddOnAvx512 vectors(add);
  for (size_t i = 0; i < count; i += ByteAddOnAvx512::kBytes) vectors.run(a + i, b + i, sum + i);
}
HEARTH_AVX2_FUNCTION void addOnAvx2(const ByteAdd& add, const uint8_t* a, const uint8_t* b,
                                    size_t count, uint8_t* sum) {
  const ByteAddOnAvx2 vectors(add);
  for (size_t i = 0; i < count; i += ByteAddOnAvx2::kBytes) vectors.run(a + i, b + i, sum + i);
}

}  // namespace

bool hasByteAdd() {
  return hasAvx2();
}

void ByteAdd::run(const uint8_t* a, const uint8_t* b, size_t count, uint8_t* sum) const {
  const auto addWhole = hasAvx512Vnni() ? addOnAvx512 : addOnAvx2;
  const size_t whole = count - count % kWhole;
  addWhole(*this, a, b, whole, sum);
  if (whole == count) return;
  uint8_t lastA[kWhole] = {}, lastB[kWhole] = {}, lastSum[kWhole];
  std::memcpy(lastA, a + whole, count - whole);
  std::memcpy(lastB, b + whole, count - whole);
  addWhole(*this, lastA, lastB, kWhole, lastSum);
  std::memcpy(sum + whole, lastSum, count - whole);
}

#else

bool hasByteAdd() {
  return false;
}
void ByteAdd::run(const uint8_t*, const uint8_t*, size_t, uint8_t*) const {}

#endif

}  // namespace hearth::cpu
