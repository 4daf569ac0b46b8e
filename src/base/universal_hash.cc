// SPDX-License-Identifier: Apache-2.0
#include "base/universal_hash.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/vector_dispatch.h"

namespace hearth::base {
namespace {

static_assert(std::endian::native == std::endian::little);

// The low and the high half of either pass's sum.
using Sums = std::array<uint64_t, 4>;

// Each function returns, for each of two passes, the sum in GF(2) of the carry-less products of the
// two words of 64 bits in each 16 bytes, with the 16 bytes of the key at their place added in
// GF(2). As the product of a difference and a key is a bijection of the key, one value of the key
// at the last place where two pieces differ gives them the same sum; the pass before has that key
// at another place, where they are equal.

// A number of 128 bits.
struct Wide {
  uint64_t low = 0;
  uint64_t high = 0;

  void operator^=(Wide other) {
    low ^= other.low;
    high ^= other.high;
  }
};

// Every fourth bit of a word, so that sums of up to 15 ones do not reach the next one: an integer
// product of two such words is their carry-less product at the bits that it keeps.
constexpr std::array<uint64_t, 4> kEveryFourth = {0x1111'1111'1111'1111, 0x2222'2222'2222'2222,
                                                  0x4444'4444'4444'4444, 0x8888'8888'8888'8888};

uint64_t carrylessProduct(uint32_t a, uint32_t b) {
  uint64_t product = 0;
  for (size_t i = 0; i < 4; ++i) {
    uint64_t sum = 0;
    for (size_t j = 0; j < 4; ++j) sum ^= (a & kEveryFourth[j]) * (b & kEveryFourth[(i - j) % 4]);
    product ^= sum & kEveryFourth[i];
  }
  return product;
}

// Karatsuba's three products of halves.
Wide carrylessProduct(uint64_t a, uint64_t b) {
  const auto lower = [](uint64_t word) {
    return static_cast<uint32_t>(word);
  };
  const auto upper = [](uint64_t word) {
    return static_cast<uint32_t>(word >> 32);
  };
  const uint64_t low = carrylessProduct(lower(a), lower(b));
  const uint64_t high = carrylessProduct(upper(a), upper(b));
  const uint64_t middle = carrylessProduct(lower(a) ^ upper(a), lower(b) ^ upper(b)) ^ low ^ high;
  return {low ^ middle << 32, high ^ middle >> 32};
}

template <size_t kSize, size_t kShift>
Sums portableSums(const uint8_t* piece, const uint8_t* keys) {
  const auto wordAt = [](const uint8_t* bytes) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  };
  Wide sums[2];
  for (size_t at = 0; at < kSize; at += 2 * sizeof(uint64_t)) {
    const uint64_t first = wordAt(piece + at);
    const uint64_t second = wordAt(piece + at + sizeof first);
    for (size_t pass = 0; pass < 2; ++pass) {
      const uint8_t* const key = keys + at + pass * kShift;
      sums[pass] ^= carrylessProduct(first ^ wordAt(key), second ^ wordAt(key + sizeof first));
    }
  }
  return {sums[0].low, sums[0].high, sums[1].low, sums[1].high};
}

#if defined(__x86_64__)

template <size_t kSize, size_t kShift>
__attribute__((target("sse2,pclmul"))) Sums wholeSums(const uint8_t* piece, const uint8_t* keys) {
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
__attribute__((target("avx512f,avx512dq,vpclmulqdq"))) Sums wideSums(const uint8_t* piece,
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

#elif defined(__aarch64__)

template <size_t kSize, size_t kShift>
__attribute__((target("+aes"))) Sums wholeSums(const uint8_t* piece, const uint8_t* keys) {
  constexpr size_t kChains = 4;  // products in flight
  uint64x2_t sums[2][kChains] = {};
  const auto product = [](uint64x2_t keyed) __attribute__((target("+aes"), always_inline)) {
    return vreinterpretq_u64_p128(vmull_p64(vgetq_lane_u64(keyed, 0), vgetq_lane_u64(keyed, 1)));
  };
  const auto load = [](const uint8_t* bytes) HEARTH_INLINE {
    return vreinterpretq_u64_u8(vld1q_u8(bytes));
  };
  for (size_t at = 0; at < kSize; at += kChains * sizeof(uint64x2_t)) {
    for (size_t chain = 0; chain < kChains; ++chain) {
      const size_t place = at + chain * sizeof(uint64x2_t);
      const uint64x2_t words = load(piece + place);
      for (size_t pass = 0; pass < 2; ++pass)
        sums[pass][chain] ^= product(words ^ load(keys + place + pass * kShift));
    }
  }
  Sums result;
  for (size_t pass = 0; pass < 2; ++pass) {
    const uint64x2_t sum = sums[pass][0] ^ sums[pass][1] ^ sums[pass][2] ^ sums[pass][3];
    vst1q_u64(result.data() + 2 * pass, sum);
  }
  return result;
}

// Sums of products of bytes: in element i of rotation r those of byte i of the first word and byte
// (i + r) % 8 of the second. Where they belong depends on i and r alone, so that they go there once
// for all words of a piece.
using ByteSums = std::array<uint16x8_t, 8>;

template <size_t kRotation>
void addRotation(uint8x8_t first, uint8x8_t second, ByteSums& sums) {
  const uint8x8_t rotated = vext_u8(second, second, kRotation);
  sums[kRotation] ^=
      vreinterpretq_u16_p16(vmull_p8(vreinterpret_p8_u8(first), vreinterpret_p8_u8(rotated)));
}

Wide sumAtItsPlace(const ByteSums& sums) {
  Wide whole;
  for (size_t rotation = 0; rotation < sums.size(); ++rotation) {
    std::array<uint16_t, 8> products;
    vst1q_u16(products.data(), sums[rotation]);
    for (size_t i = 0; i < products.size(); ++i) {
      const size_t bit = 8 * (i + (i + rotation) % 8);
      const uint64_t product = products[i];
      if (bit < 64) whole.low ^= product << bit;
      if (bit >= 64)
        whole.high ^= product << (bit - 64);
      else if (bit > 48)
        whole.high ^= product >> (64 - bit);
    }
  }
  return whole;
}

template <size_t kSize, size_t kShift>
Sums narrowSums(const uint8_t* piece, const uint8_t* keys) {
  Sums result;
  for (size_t pass = 0; pass < 2; ++pass) {
    const uint8_t* const shifted = keys + pass * kShift;
    ByteSums sums{};
    for (size_t at = 0; at < kSize; at += sizeof(uint8x16_t)) {
      const uint8x16_t keyed = vld1q_u8(piece + at) ^ vld1q_u8(shifted + at);
      [&]<size_t... kRotation>(std::index_sequence<kRotation...>) HEARTH_INLINE {
        (addRotation<kRotation>(vget_low_u8(keyed), vget_high_u8(keyed), sums), ...);
      }(std::make_index_sequence<8>());
    }
    const Wide sum = sumAtItsPlace(sums);
    result[2 * pass] = sum.low;
    result[2 * pass + 1] = sum.high;
  }
  return result;
}

#endif

}  // namespace

std::vector<UniversalHash::Kind> UniversalHash::kinds() {
  std::vector<Kind> kinds;
#if defined(__x86_64__)
  const bool hasProducts = __builtin_cpu_supports("pclmul");
  if (hasProducts && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512dq"))
    kinds.push_back(Kind::kWide);
  if (hasProducts) kinds.push_back(Kind::kWhole);
#elif defined(__aarch64__)
  if ((::getauxval(AT_HWCAP) & HWCAP_PMULL) != 0) kinds.push_back(Kind::kWhole);
  kinds.push_back(Kind::kNarrow);
#endif
  kinds.push_back(Kind::kPortable);
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
    case Kind::kWide:
      sums = wideSums<kPiece, kShift>(piece, keys_.data());
      break;
#elif defined(__aarch64__)
    case Kind::kNarrow:
      sums = narrowSums<kPiece, kShift>(piece, keys_.data());
      break;
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    case Kind::kWhole:
      sums = wholeSums<kPiece, kShift>(piece, keys_.data());
      break;
#endif
    default:
      sums = portableSums<kPiece, kShift>(piece, keys_.data());
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
