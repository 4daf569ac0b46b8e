// SPDX-License-Identifier: Apache-2.0
#include "base/gmac.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/sha256.h"

namespace hearth::base {
namespace {

// The first test case of the GCM specification (McGrew, Viega): a key and a vector of zeros, and
// nothing to authenticate.
TEST(Gmac, MatchesThePublishedVector) {
  EXPECT_EQ(toHex(Gmac({}).of({})), "58e2fccefa7e3061367f1d57a4e7455a");
}

TEST(Gmac, EachByteCounts) {
  Gmac gmac({1, 2, 3});
  std::vector<uint8_t> bytes(1000);
  std::set<Gmac::Tag> tags{gmac.of(bytes)};
  for (uint8_t& byte : bytes) {
    byte = 1;
    EXPECT_TRUE(tags.insert(gmac.of(bytes)).second);
    byte = 0;
  }
  // So does their number, although zeros are appended to a part of a block.
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_TRUE(tags.insert(gmac.of(std::span(bytes).first(size))).second) << size;
}

TEST(Gmac, OnlyTheKeyAndTheBytesCount) {
  const std::vector<uint8_t> bytes(100'000, 7);
  Gmac gmac({1});
  const Gmac::Tag tag = gmac.of(bytes);
  gmac.of(std::span(bytes).first(17));
  EXPECT_EQ(gmac.of(bytes), tag);
  EXPECT_EQ(Gmac({1}).of(bytes), tag);
  EXPECT_NE(Gmac({2}).of(bytes), tag);
  // Whether the bytes begin at a multiple of something does not count.
  std::vector<uint8_t> shifted(bytes.size() + 3);
  std::ranges::copy(bytes, shifted.begin() + 3);
  EXPECT_EQ(gmac.of(std::span(shifted).subspan(3)), tag);
}

}  // namespace
}  // namespace hearth::base
