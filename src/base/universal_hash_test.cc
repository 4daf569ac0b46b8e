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

uint64_t wordAt(std::span<const uint8_t> bytes, size_t index) {
  uint64_t word = 0;
  for (size_t i = 8; i-- > 0;)
    word = word << 8 | (8 * index + i < bytes.size() ? bytes[8 * index + i] : 0u);
  return word;
}

using Kind = UniversalHash::Kind;

std::vector<uint8_t> keysOf(const UniversalHash::Key& key) {
  std::vector<uint8_t> keys;
  for (uint32_t number = 0; keys.size() < kPiece + 64; ++number) {
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
std::vector<uint64_t> definedSums(std::span<const uint8_t> piece, std::span<const uint8_t> keys) {
  std::vector<uint64_t> sums;
  for (size_t pass = 0; pass < 2; ++pass) {
    Wide sum{};
    for (size_t i = 0; i < kPiece / 8; i += 2) {
      const Wide product = carrylessProduct(wordAt(piece, i) ^ wordAt(keys, i + 8 * pass),
                                            wordAt(piece, i + 1) ^ wordAt(keys, i + 1 + 8 * pass));
      sum[0] ^= product[0];
      sum[1] ^= product[1];
    }
    sums.insert(sums.end(), sum.begin(), sum.end());
  }
  return sums;
}

UniversalHash::Tag definedTag(const UniversalHash::Key& key, std::span<const uint8_t> bytes) {
  const std::vector<uint8_t> keys = keysOf(key);
  std::vector<uint8_t> sums;
  const auto append = [&](uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
      sums.push_back(static_cast<uint8_t>(value >> shift));
  };
  for (size_t at = 0; at < bytes.size(); at += kPiece)
    for (const uint64_t sum :
         definedSums(bytes.subspan(at, std::min(kPiece, bytes.size() - at)), keys))
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
    EXPECT_EQ(hash.of(std::span(bytes).first(size)), definedTag(key, std::span(bytes).first(size)))
        << size;
  const std::vector<uint8_t> largest(2 * kPiece, 0xff);
  EXPECT_EQ(hash.of(largest), definedTag(key, largest));
}

TEST_P(UniversalHashTest, EachByteAndTheLengthCount) {
  const UniversalHash hash({7}, GetParam());
  std::vector<uint8_t> bytes(kPiece + 100);
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

// Stores of other processors hold such tags.
TEST_P(UniversalHashTest, TagsStayWhatTheyAre) {
  std::vector<uint8_t> bytes(kPiece + 3);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i >> 3);
  const UniversalHash::Tag tag = {0x39, 0x3e, 0x1a, 0x73, 0xa9, 0xa0, 0x2b, 0x60,
                                  0x44, 0x59, 0xa2, 0x78, 0x7f, 0xf7, 0x7b, 0xa8};
  EXPECT_EQ(UniversalHash({1, 2, 3}, GetParam()).of(bytes), tag);
}

}  // namespace
}  // namespace hearth::base
