// SPDX-License-Identifier: Apache-2.0
#include "base/universal_hash.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/vector_dispatch.h"

namespace hearth::base {
namespace {

static_assert(std::endian::native == std::endian::little);

// What either function makes of a piece.
using Sums = std::array<uint64_t, 4>;

// For each pass the sum, modulo 2^64, of the products of a word of 32 bits in the first half and
// one in the second, each with a word of the half's key added modulo 2^32.
template <size_t kHalf, size_t kShift, size_t kSecondKey>
Sums nhSums(const uint8_t* piece, const uint8_t* keys) {
  Sums sums{};
  onWidestVectors([=, &sums]() HEARTH_INLINE {
    constexpr size_t kWords = kHalf / sizeof(uint32_t);
    std::array<uint32_t, kWords> first;
    std::array<uint32_t, kWords> second;
    std::memcpy(first.data(), piece, kHalf);
    std::memcpy(second.data(), piece + kHalf, kHalf);
    const auto* const a = reinterpret_cast<const uint32_t*>(keys);
    const auto* const b = reinterpret_cast<const uint32_t*>(keys + kSecondKey);
    const auto product = [&](size_t i, size_t pass) HEARTH_INLINE {
      const size_t key = i + pass * (kShift / sizeof(uint32_t));
      return uint64_t{first[i] + a[key]} * uint64_t{second[i] + b[key]};
    };
    uint64_t sum0 = 0;
    uint64_t sum1 = 0;
    uint64_t sum2 = 0;
    uint64_t sum3 = 0;
    for (size_t i = 0; i < kWords; ++i) {
      sum0 += product(i, 0);
      sum1 += product(i, 1);
      sum2 += product(i, 2);
      sum3 += product(i, 3);
    }
    sums = {sum0, sum1, sum2, sum3};
  });
  return sums;
}

#if defined(__x86_64__)

// For each of two passes the sum, in GF(2), of the carry-less products of the two words of 64 bits
// in each 16 bytes, with the 16 bytes of the key at their place added in GF(2). As the product of a
// difference and a key is a bijection of the key, one value of the key at the last place where two
// pieces differ gives them the same sum; the pass before has that key at another place, where they
// are equal.
template <size_t kSize, size_t kShift>
__attribute__((target("sse2,pclmul"))) Sums clnhSums(const uint8_t* piece, const uint8_t* keys) {
  constexpr size_t kChains = 4;  // products in flight
  __m128i sum0[kChains] = {};
  __m128i sum1[kChains] = {};
  const auto load = [](const uint8_t* bytes) HEARTH_INLINE {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  };
  for (size_t at = 0; at < kSize; at += kChains * sizeof(__m128i)) {
    for (size_t chain = 0; chain < kChains; ++chain) {
      const size_t place = at + chain * sizeof(__m128i);
      const __m128i words = load(piece + place);
      const __m128i keyed0 = words ^ load(keys + place);
      const __m128i keyed1 = words ^ load(keys + place + kShift);
      sum0[chain] ^= _mm_clmulepi64_si128(keyed0, keyed0, 1);
      sum1[chain] ^= _mm_clmulepi64_si128(keyed1, keyed1, 1);
    }
  }
  for (size_t chain = 1; chain < kChains; ++chain) {
    sum0[0] ^= sum0[chain];
    sum1[0] ^= sum1[chain];
  }
  Sums sums;
  std::memcpy(sums.data(), &sum0[0], sizeof sum0[0]);
  std::memcpy(sums.data() + 2, &sum1[0], sizeof sum1[0]);
  return sums;
}

__attribute__((target("avx512f,avx512dq,vpclmulqdq"))) HEARTH_INLINE inline __m128i sumOfLanes(
    __m512i value) {
  return _mm512_extracti64x2_epi64(value, 0) ^ _mm512_extracti64x2_epi64(value, 1) ^
         _mm512_extracti64x2_epi64(value, 2) ^ _mm512_extracti64x2_epi64(value, 3);
}

__attribute__((target("avx512f,avx512dq,vpclmulqdq"))) HEARTH_INLINE inline __m512i keyedProducts(
    __m512i words, const uint8_t* key) {
  const __m512i keyed = words ^ _mm512_loadu_si512(key);
  return _mm512_clmulepi64_epi128(keyed, keyed, 1);
}

// The same, four products at a time.
template <size_t kSize, size_t kShift>
__attribute__((target("avx512f,avx512dq,vpclmulqdq"))) Sums wideClnhSums(const uint8_t* piece,
                                                                         const uint8_t* keys) {
  constexpr size_t kChains = 2;
  __m512i sum0[kChains] = {};
  __m512i sum1[kChains] = {};
  for (size_t at = 0; at < kSize; at += kChains * sizeof(__m512i)) {
    for (size_t chain = 0; chain < kChains; ++chain) {
      const size_t place = at + chain * sizeof(__m512i);
      const __m512i words = _mm512_loadu_si512(piece + place);
      sum0[chain] ^= keyedProducts(words, keys + place);
      sum1[chain] ^= keyedProducts(words, keys + place + kShift);
    }
  }
  const __m128i all0 = sumOfLanes(sum0[0] ^ sum0[1]);
  const __m128i all1 = sumOfLanes(sum1[0] ^ sum1[1]);
  Sums sums;
  std::memcpy(sums.data(), &all0, sizeof all0);
  std::memcpy(sums.data() + 2, &all1, sizeof all1);
  return sums;
}

#endif

}  // namespace

std::vector<UniversalHash::Kind> UniversalHash::kinds() {
  std::vector<Kind> kinds;
#if defined(__x86_64__)
  const bool hasProducts = __builtin_cpu_supports("pclmul");
  if (hasProducts && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512dq"))
    kinds.push_back(Kind::kWideClnh);
  if (hasProducts) kinds.push_back(Kind::kClnh);
#endif
  kinds.push_back(Kind::kNh);
  return kinds;
}

UniversalHash::UniversalHash(const Key& key, Kind kind) : kind_(kind) {
  uint32_t number = 0;
  for (size_t at = 0; at < keys_.size(); ++number) {
    Sha256 hash;
    hash.update(key);
    hash.update(&number, sizeof number);
    const Sha256Digest digest = hash.finish();
    const size_t size = std::min(digest.size(), keys_.size() - at);
    std::memcpy(keys_.data() + at, digest.data(), size);
    at += size;
  }
}

void UniversalHash::add(Sha256& hash, const uint8_t* piece) const {
  Sums sums;
  switch (kind_) {
#if defined(__x86_64__)
    case Kind::kWideClnh:
      sums = wideClnhSums<kPiece, kShift>(piece, keys_.data());
      break;
    case Kind::kClnh:
      sums = clnhSums<kPiece, kShift>(piece, keys_.data());
      break;
#endif
    default:
      sums = nhSums<kPiece / 2, kShift, sizeof keys_ / 2>(piece, keys_.data());
  }
  hash.update(sums.data(), sizeof sums);
}

UniversalHash::Tag UniversalHash::of(std::span<const uint8_t> bytes) const {
  Sha256 hash;
  const uint64_t size = bytes.size();
  for (; bytes.size() >= kPiece; bytes = bytes.subspan(kPiece)) add(hash, bytes.data());
  if (!bytes.empty()) {
    std::array<uint8_t, kPiece> last{};
    std::memcpy(last.data(), bytes.data(), bytes.size());
    add(hash, last.data());
  }
  hash.update(&size, sizeof size);
  const Sha256Digest digest = hash.finish();
  Tag tag;
  std::memcpy(tag.data(), digest.data(), tag.size());
  return tag;
}

}  // namespace hearth::base
