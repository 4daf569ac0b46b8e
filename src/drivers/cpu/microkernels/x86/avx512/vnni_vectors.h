// SPDX-License-Identifier: Apache-2.0
// Operations on vectors of 64 or 32 bytes for our kernels on AVX-512 VNNI. x86-64 only.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define HEARTH_VNNI \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"), always_inline)) inline
#define HEARTH_VNNI_FUNCTION __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

namespace hearth::cpu {

// 16 lanes of 32 bits.
struct WholeVector {
  using Ints = __m512i;
  using Floats = __m512;
  static constexpr size_t kBytes = 64;

  HEARTH_VNNI static Ints load(const void* from) { return _mm512_loadu_si512(from); }
  // Loads the first `count` bytes; the others are not read and become zero.
  HEARTH_VNNI static Ints load(const void* from, size_t count) {
    return _mm512_maskz_loadu_epi8(firstBytes(count), from);
  }
  HEARTH_VNNI static void store(void* to, Ints value) { _mm512_storeu_si512(to, value); }
  HEARTH_VNNI static void store(void* to, Ints value, size_t count) {
    _mm512_mask_storeu_epi8(to, firstBytes(count), value);
  }
  HEARTH_VNNI static Ints ofBytes(int8_t value) { return _mm512_set1_epi8(value); }
  HEARTH_VNNI static Ints ofWords(int16_t value) { return _mm512_set1_epi16(value); }
  HEARTH_VNNI static Floats ofFloats(float value) { return _mm512_set1_ps(value); }
  HEARTH_VNNI static Floats loadFloats(const void* from) { return _mm512_loadu_ps(from); }
  HEARTH_VNNI static Ints exclusiveOr(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
  // Adds to each lane the sum of its four products. With the intrinsic g++ 14 copies the sums and
  // runs out of registers for them.
  HEARTH_VNNI static void dot(Ints& sums, Ints unsignedBytes, Ints signedBytes) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(unsignedBytes), "vm"(signedBytes));
  }
  HEARTH_VNNI static Ints lowBytes(Ints a, Ints b) { return _mm512_unpacklo_epi8(a, b); }
  HEARTH_VNNI static Ints highBytes(Ints a, Ints b) { return _mm512_unpackhi_epi8(a, b); }
  HEARTH_VNNI static Ints lowPairs(Ints a, Ints b) { return _mm512_unpacklo_epi16(a, b); }
  HEARTH_VNNI static Ints highPairs(Ints a, Ints b) { return _mm512_unpackhi_epi16(a, b); }
  // The bound is applied before the conversion, which has no result for large numbers.
  HEARTH_VNNI static Ints scaled(Ints sums, Floats scale, Floats ceiling) {
    return _mm512_cvtps_epi32(
        _mm512_min_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), scale), ceiling));
  }
  // Narrows four vectors of steps to bytes: in each 128 bits, the four lanes of the first vector,
  // then those of the second, and so on.
  HEARTH_VNNI static Ints narrowed(const Ints (&steps)[4], Ints zeroWords, Ints lowestBytes) {
    const Ints low = _mm512_adds_epi16(_mm512_packs_epi32(steps[0], steps[1]), zeroWords);
    const Ints high = _mm512_adds_epi16(_mm512_packs_epi32(steps[2], steps[3]), zeroWords);
    return _mm512_max_epi8(_mm512_packs_epi16(low, high), lowestBytes);
  }

 private:
  HEARTH_VNNI static __mmask64 firstBytes(size_t count) {
    return count >= kBytes ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  }
};

// 8 lanes of 32 bits.
struct HalfVector {
  using Ints = __m256i;
  using Floats = __m256;
  static constexpr size_t kBytes = 32;

  HEARTH_VNNI static Ints load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  HEARTH_VNNI static Ints load(const void* from, size_t count) {
    return _mm256_maskz_loadu_epi8(firstBytes(count), from);
  }
  HEARTH_VNNI static void store(void* to, Ints value) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), value);
  }
  HEARTH_VNNI static void store(void* to, Ints value, size_t count) {
    _mm256_mask_storeu_epi8(to, firstBytes(count), value);
  }
  HEARTH_VNNI static Ints ofBytes(int8_t value) { return _mm256_set1_epi8(value); }
  HEARTH_VNNI static Ints ofWords(int16_t value) { return _mm256_set1_epi16(value); }
  HEARTH_VNNI static Floats ofFloats(float value) { return _mm256_set1_ps(value); }
  HEARTH_VNNI static Floats loadFloats(const void* from) {
    return _mm256_loadu_ps(static_cast<const float*>(from));
  }
  HEARTH_VNNI static Ints exclusiveOr(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
  HEARTH_VNNI static void dot(Ints& sums, Ints unsignedBytes, Ints signedBytes) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(unsignedBytes), "vm"(signedBytes));
  }
  HEARTH_VNNI static Ints lowBytes(Ints a, Ints b) { return _mm256_unpacklo_epi8(a, b); }
  HEARTH_VNNI static Ints highBytes(Ints a, Ints b) { return _mm256_unpackhi_epi8(a, b); }
  HEARTH_VNNI static Ints lowPairs(Ints a, Ints b) { return _mm256_unpacklo_epi16(a, b); }
  HEARTH_VNNI static Ints highPairs(Ints a, Ints b) { return _mm256_unpackhi_epi16(a, b); }
  HEARTH_VNNI static Ints scaled(Ints sums, Floats scale, Floats ceiling) {
    return _mm256_cvtps_epi32(
        _mm256_min_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sums), scale), ceiling));
  }
  HEARTH_VNNI static Ints narrowed(const Ints (&steps)[4], Ints zeroWords, Ints lowestBytes) {
    const Ints low = _mm256_adds_epi16(_mm256_packs_epi32(steps[0], steps[1]), zeroWords);
    const Ints high = _mm256_adds_epi16(_mm256_packs_epi32(steps[2], steps[3]), zeroWords);
    return _mm256_max_epi8(_mm256_packs_epi16(low, high), lowestBytes);
  }

 private:
  HEARTH_VNNI static __mmask32 firstBytes(size_t count) {
    return count >= kBytes ? ~uint32_t{0} : (uint32_t{1} << count) - 1;
  }
};

}  // namespace hearth::cpu
