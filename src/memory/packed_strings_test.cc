// SPDX-License-Identifier: Apache-2.0
#include "memory/packed_strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace hearth::memory {
namespace {

using testing::HasSubstr;

std::vector<uint8_t> bytesOf(std::vector<int32_t> words, std::string_view text = "") {
  std::vector<uint8_t> bytes(words.size() * sizeof(int32_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

std::vector<std::string_view> stringsOf(const PackedStrings& packed) {
  std::vector<std::string_view> strings;
  for (size_t i = 0; i < packed.count(); ++i) strings.push_back(packed[i]);
  return strings;
}

TEST(PackedStringsTest, HasTheFormatOfTflite) {
  const std::array<std::string_view, 3> strings = {"ab", "", "c"};
  const std::vector<uint8_t> packed = packStrings(strings).value();
  EXPECT_EQ(packed, bytesOf({3, 20, 22, 22, 23}, "abc"));
  EXPECT_THAT(stringsOf(PackedStrings::of(packed).value()), testing::ElementsAreArray(strings));
}

TEST(PackedStringsTest, ReadsAnyAlignmentAndBytesBehind) {
  std::vector<uint8_t> shifted = bytesOf({1, 12, 14}, "xyz");
  shifted.insert(shifted.begin(), 0);
  EXPECT_THAT(stringsOf(PackedStrings::of(std::span(shifted).subspan(1)).value()),
              testing::ElementsAre("xy"));
}

TEST(PackedStringsTest, HasNoStringsWithoutBytes) {
  EXPECT_EQ(PackedStrings::of({}).value().count(), 0u);
  EXPECT_EQ(PackedStrings::of(packStrings({}).value()).value().count(), 0u);
}

TEST(PackedStringsTest, RefusesOffsetsThatLieOutside) {
  const auto errorOf = [](const std::vector<uint8_t>& bytes) {
    return PackedStrings::of(bytes).error().toString();
  };
  EXPECT_THAT(errorOf({1, 0, 0, 0, 12, 0, 0}), HasSubstr("has 7 bytes, it needs at least 8"));
  EXPECT_THAT(errorOf(bytesOf({2, 12, 12})), HasSubstr("says that it has 2 strings"));
  EXPECT_THAT(errorOf(bytesOf({-1, 8})), HasSubstr("says that it has -1 strings"));
  EXPECT_THAT(errorOf(bytesOf({0x7fffffff, 8})), HasSubstr("2147483647 strings"));
  EXPECT_THAT(errorOf(bytesOf({1, 12, 14}, "x")), HasSubstr("Offset 1 of a buffer of strings"));
  EXPECT_THAT(errorOf(bytesOf({1, 13, 12}, "x")), HasSubstr("is 12, it must be in [13, 13]"));
  EXPECT_THAT(errorOf(bytesOf({1, -4, 12})), HasSubstr("Offset 0"));
}

}  // namespace
}  // namespace hearth::memory
