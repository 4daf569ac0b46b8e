// SPDX-License-Identifier: Apache-2.0
#include "base/universal_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <vector>

namespace hearth::base {
namespace {

constexpr size_t kPiece = 8192;

std::vector<uint8_t> randomBytes(size_t size) {
  std::vector<uint8_t> bytes(size);
  uint32_t number = 1;
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((number = number * 1664525 + 7) >> 24);
  return bytes;
}

uint32_t wordAt(std::span<const uint8_t> bytes, size_t index) {
  uint32_t word = 0;
  for (size_t i = 4; i-- > 0;)
    word = word << 8 | (4 * index + i < bytes.size() ? bytes[4 * index + i] : 0u);
  return word;
}

using Kind = UniversalHash::Kind;

std::vector<uint8_t> keysOf(const UniversalHash::Key& key) {
  std::vector<uint8_t> keys;
  for (uint32_t number = 0; keys.size() < kPiece + 2 * 192; ++number) {
    std::vector<uint8_t> seed(key.begin(), key.end());
    for (int shift = 0; shift < 32; shift += 8)
      seed.push_back(static_cast<uint8_t>(number >> shift));
    std::ranges::copy(Sha256::of(seed), std::back_inserter(keys));
  }
  return keys;
}

// A number of 128 bits, the lower half first.
using Wide = std::array<uint64_t, 2>;

Wide carrylessProduct(uint64_t a, uint64_t b) {
  Wide product{};
  for (unsigned bit = 0; bit < 64; ++bit) {
    if ((b >> bit & 1) == 0) continue;
    product[0] ^= a << bit;
    if (bit != 0) product[1] ^= a >> (64 - bit);
  }
  return product;
}

// What the definitions make of a piece, word by word.
std::vector<uint64_t> definedSums(Kind kind, std::span<const uint8_t> piece,
                                  std::span<const uint8_t> keys) {
  std::vector<uint64_t> sums;
  if (kind == Kind::kNh) {
    for (size_t pass = 0; pass < 4; ++pass) {
      uint64_t sum = 0;
      for (size_t i = 0; i < 1024; ++i) {
        const uint32_t first = wordAt(piece, i) + wordAt(keys, i + 16 * pass);
        const uint32_t second = wordAt(piece, 1024 + i) + wordAt(keys, 1024 + 48 + i + 16 * pass);
        sum += uint64_t{first} * second;
      }
      sums.push_back(sum);
    }
    return sums;
  }
  const auto longWordAt = [](std::span<const uint8_t> bytes, size_t index) {
    return uint64_t{wordAt(bytes, 2 * index + 1)} << 32 | wordAt(bytes, 2 * index);
  };
  for (size_t pass = 0; pass < 2; ++pass) {
    Wide sum{};
    for (size_t i = 0; i < kPiece / 8; i += 2) {
      const Wide product =
          carrylessProduct(longWordAt(piece, i) ^ longWordAt(keys, i + 8 * pass),
                           longWordAt(piece, i + 1) ^ longWordAt(keys, i + 1 + 8 * pass));
      sum[0] ^= product[0];
      sum[1] ^= product[1];
    }
    sums.insert(sums.end(), sum.begin(), sum.end());
  }
  return sums;
}

UniversalHash::Tag definedTag(Kind kind, const UniversalHash::Key& key,
                              std::span<const uint8_t> bytes) {
  const std::vector<uint8_t> keys = keysOf(key);
  std::vector<uint8_t> sums;
  const auto append = [&](uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
      sums.push_back(static_cast<uint8_t>(value >> shift));
  };
  for (size_t at = 0; at < bytes.size(); at += kPiece)
    for (const uint64_t sum :
         definedSums(kind, bytes.subspan(at, std::min(kPiece, bytes.size() - at)), keys))
      append(sum);
  append(bytes.size());
  UniversalHash::Tag tag;
  std::memcpy(tag.data(), Sha256::of(sums).data(), tag.size());
  return tag;
}

class UniversalHashTest : public testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(OfEachKind, UniversalHashTest, testing::ValuesIn(UniversalHash::kinds()));

TEST_P(UniversalHashTest, IsWhatItsDefinitionSays) {
  const std::vector<uint8_t> bytes = randomBytes(3 * kPiece + 100);
  const UniversalHash::Key key = {1, 2, 3, 250};
  const UniversalHash hash(key, GetParam());
  for (const size_t size : {size_t{0}, size_t{1}, size_t{5}, kPiece / 2, kPiece - 1, kPiece,
                            kPiece + 1, 2 * kPiece, bytes.size()})
    EXPECT_EQ(hash.of(std::span(bytes).first(size)),
              definedTag(GetParam(), key, std::span(bytes).first(size)))
        << size;
  const std::vector<uint8_t> largest(2 * kPiece, 0xff);
  EXPECT_EQ(hash.of(largest), definedTag(GetParam(), key, largest));
}

TEST_P(UniversalHashTest, EachByteAndTheLengthCount) {
  const UniversalHash hash({7}, GetParam());
  std::vector<uint8_t> bytes(2 * kPiece);
  std::set<UniversalHash::Tag> tags{hash.of(bytes)};
  for (uint8_t& byte : bytes) {
    byte = 1;
    EXPECT_TRUE(tags.insert(hash.of(bytes)).second);
    byte = 0;
  }
  for (size_t size = 0; size < bytes.size(); size += 100)
    EXPECT_TRUE(tags.insert(hash.of(std::span(bytes).first(size))).second) << size;
}

TEST_P(UniversalHashTest, OnlyTheKeyAndTheBytesCount) {
  const std::vector<uint8_t> bytes = randomBytes(kPiece + 77);
  const UniversalHash::Tag tag = UniversalHash({1}, GetParam()).of(bytes);
  EXPECT_NE(UniversalHash({2}, GetParam()).of(bytes), tag);
  for (const size_t offset : {1, 3, 4, 32}) {
    std::vector<uint8_t> shifted(bytes.size() + offset);
    std::ranges::copy(bytes, shifted.begin() + static_cast<std::ptrdiff_t>(offset));
    EXPECT_EQ(UniversalHash({1}, GetParam()).of(std::span(shifted).subspan(offset)), tag);
  }
}

TEST(UniversalHash, TheFirstKindIsTheDefault) {
  const std::vector<uint8_t> bytes = randomBytes(kPiece);
  const UniversalHash::Key key = {5};
  EXPECT_EQ(UniversalHash(key).of(bytes),
            UniversalHash(key, UniversalHash::kinds().front()).of(bytes));
}

}  // namespace
}  // namespace hearth::base
