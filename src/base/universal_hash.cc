// SPDX-License-Identifier: Apache-2.0
#include "base/universal_hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/vector_dispatch.h"

namespace hearth::base {

static_assert(std::endian::native == std::endian::little);

UniversalHash::UniversalHash(const Key& key) {
  auto* const bytes = reinterpret_cast<uint8_t*>(keys_.data());
  uint32_t number = 0;
  for (size_t at = 0; at < sizeof keys_; ++number) {
    Sha256 hash;
    hash.update(key);
    hash.update(&number, sizeof number);
    const Sha256Digest digest = hash.finish();
    const size_t size = std::min(digest.size(), sizeof keys_ - at);
    std::memcpy(bytes + at, digest.data(), size);
    at += size;
  }
}

// Hashes what NH makes of a piece: for each pass the sum, modulo 2^64, of the products of a word of
// the first half and one of the second, each with a word of the key added modulo 2^32.
void UniversalHash::add(Sha256& hash, const uint8_t* piece) const {
  std::array<uint64_t, kPasses> sums{};
  onWidestVectors([=, this, &sums]() HEARTH_INLINE {
    std::array<uint32_t, kHalf> first;
    std::array<uint32_t, kHalf> second;
    std::memcpy(first.data(), piece, sizeof first);
    std::memcpy(second.data(), piece + sizeof first, sizeof second);
    const uint32_t* const a = keys_[0].data();
    const uint32_t* const b = keys_[1].data();
    const auto product = [&](size_t i, size_t pass) HEARTH_INLINE {
      const size_t key = i + pass * kShift;
      return uint64_t{first[i] + a[key]} * uint64_t{second[i] + b[key]};
    };
    uint64_t sum0 = 0;
    uint64_t sum1 = 0;
    uint64_t sum2 = 0;
    uint64_t sum3 = 0;
    for (size_t i = 0; i < kHalf; ++i) {
      sum0 += product(i, 0);
      sum1 += product(i, 1);
      sum2 += product(i, 2);
      sum3 += product(i, 3);
    }
    sums = {sum0, sum1, sum2, sum3};
  });
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
