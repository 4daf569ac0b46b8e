// SPDX-License-Identifier: Apache-2.0
#include "base/inflate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hearth::base {
namespace {

using ::testing::HasSubstr;

// "abc" in a block that is not compressed, the last one.
const std::vector<uint8_t> kStored = {1, 3, 0, 0xfc, 0xff, 'a', 'b', 'c'};
constexpr uint32_t kCrc = 0x352441c2;

TEST(InflateTest, TheChecksumIsTheCommonOne) {
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32("abc"), kCrc);
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);
}

TEST(InflateTest, UnpacksBytesAlone) {
  EXPECT_EQ(unpackDeflated(kStored, 3, kCrc), "abc");
  // A hundred times "a", by codes that the format fixes.
  const std::vector<uint8_t> repeated = {0x4b, 0x4c, 0xa4, 0x3d, 0x00, 0x00};
  const std::string many(100, 'a');
  EXPECT_EQ(unpackDeflated(repeated, 100, crc32(many)), many);
}

TEST(InflateTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(unpackDeflated(kStored, 3, kCrc + 1).error().message(), HasSubstr("checksum"));
  EXPECT_FALSE(unpackDeflated(kStored, 2, kCrc));
  EXPECT_FALSE(unpackDeflated(kStored, 4, kCrc));
  EXPECT_THAT(unpackDeflated(kStored, SIZE_MAX, kCrc).error().message(), HasSubstr("cannot hold"));
  EXPECT_THAT(unpackDeflated(kStored, 1'000'000, kCrc).error().message(), HasSubstr("cannot hold"));
  for (size_t size = 0; size < kStored.size(); ++size)
    EXPECT_FALSE(unpackDeflated({kStored.data(), size}, 3, kCrc)) << size;
}

TEST(InflateTest, ZlibStreamsHaveAHeadAndASum) {
  std::vector<uint8_t> stream = {0x78, 0x01};
  stream.insert(stream.end(), kStored.begin(), kStored.end());
  stream.insert(stream.end(), {0x02, 0x4d, 0x01, 0x27});
  EXPECT_EQ(unpackZlib(stream, 3), "abc");
  // Sizes that no stream of such a length has are refused before memory is taken for them.
  EXPECT_THAT(unpackZlib(stream, 1 << 30).error().message(), HasSubstr("cannot hold"));
  EXPECT_THAT(unpackZlib({stream.data(), 5}, 3).error().message(), HasSubstr("cannot hold"));
  stream.back() ^= 1;
  EXPECT_FALSE(unpackZlib(stream, 3));
}

}  // namespace
}  // namespace hearth::base
