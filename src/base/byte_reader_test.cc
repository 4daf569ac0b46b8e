// SPDX-License-Identifier: Apache-2.0
#include "base/byte_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace hearth::base {
namespace {

// A count and the elements behind it, the first `words` of them.
std::vector<uint8_t> bytesOf(std::array<uint64_t, 3> all, size_t words) {
  std::vector<uint8_t> bytes(words * sizeof all[0]);
  std::memcpy(bytes.data(), all.data(), bytes.size());
  return bytes;
}

TEST(ByteReader, ACountIsOfElementsBehindIt) {
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{2}}) {
    const std::vector<uint8_t> bytes = bytesOf({count, 7, 8}, 3);
    ByteReader reader(bytes);
    EXPECT_EQ(reader.count(sizeof(uint64_t)), count);
    EXPECT_TRUE(reader.isGood());
  }
  for (const uint64_t count : {uint64_t{3}, UINT64_MAX}) {
    const std::vector<uint8_t> bytes = bytesOf({count, 7, 8}, 3);
    ByteReader reader(bytes);
    EXPECT_EQ(reader.count(sizeof(uint64_t)), 0u);
    EXPECT_FALSE(reader.isGood());
  }
}

TEST(ByteReader, AListEndsWithTheBytes) {
  const std::vector<uint8_t> bytes = bytesOf({2, 7, 8}, 3);
  ByteReader whole(bytes);
  EXPECT_EQ(whole.list<uint64_t>(), (std::vector<uint64_t>{7, 8}));
  EXPECT_TRUE(whole.isGood());
  const std::vector<uint8_t> cutBytes = bytesOf({2, 7, 8}, 2);
  ByteReader cut(cutBytes);
  EXPECT_TRUE(cut.list<uint64_t>().empty());
  EXPECT_FALSE(cut.isGood());
}

}  // namespace
}  // namespace hearth::base
