// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packing_source.h"

#include <gtest/gtest.h>

#include <utility>

namespace hearth::cpu {
namespace {

base::Sha256Digest digest(uint8_t number) {
  return base::Sha256::of({&number, 1});
}

PackingSource source(std::vector<PackingSource::Range> ranges) {
  return {digest(9), std::move(ranges)};
}

// The tags of bytes that are told apart by this number.
cache::ContentTags tags(uint64_t size, uint8_t bytes) {
  return {size, {{bytes}}};
}

TEST(PackingSourceTest, TheBytesCountAndNotWhereTheyLie) {
  const auto contentOf = [](const PackingSource& packed, uint8_t first, uint8_t second) {
    uint8_t next = first;
    return packed.content([&](const PackingSource::Range& range) {
      return tags(range.length, std::exchange(next, second));
    });
  };
  const PackingSource two = source({{0, 10, 100}, {1, 20, 200}});
  const auto content = contentOf(two, 1, 2);
  ASSERT_TRUE(content);
  EXPECT_EQ(contentOf(source({{3, 64, 100}, {0, 7, 200}}), 1, 2), content);
  EXPECT_NE(contentOf(two, 1, 3), content);
  EXPECT_NE(contentOf(two, 2, 1), content);
  EXPECT_NE(contentOf(source({{0, 10, 100}, {1, 20, 201}}), 1, 2), content);
  EXPECT_NE(contentOf(source({{0, 10, 100}}), 1, 2), content);
  PackingSource other = two;
  other.attributes = digest(8);
  EXPECT_NE(contentOf(other, 1, 2), content);
}

TEST(PackingSourceTest, WithoutTheTagsThereIsNone) {
  const auto none = [](const PackingSource::Range&) -> std::optional<cache::ContentTags> {
    return std::nullopt;
  };
  EXPECT_FALSE(source({{0, 0, 1}}).content(none));
  EXPECT_TRUE(source({}).content(none));
}

}  // namespace
}  // namespace hearth::cpu
