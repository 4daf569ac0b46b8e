// SPDX-License-Identifier: Apache-2.0
#include "cache/identity/content_tags.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <set>

#include "base/descriptor.h"
#include "cache/identity/content_hash.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {
namespace {

constexpr base::UniversalHash::Key kKey = {1, 2, 3};
// Enough for several threads, and no multiple of a block.
constexpr size_t kBytes = 40 * size_t{1 << 20} + 12345;

class ContentTagsTest : public testing::Test {
 protected:
  ContentTagsTest() : bytes_(kBytes) {
    uint32_t number = 1;
    for (uint8_t& byte : bytes_) byte = static_cast<uint8_t>((number = number * 1664525 + 7) >> 24);
  }
  base::Descriptor file() const {
    writeFile(folder_.path() / "file", bytes_);
    return base::Descriptor::open(folder_.path() / "file", O_RDONLY).value();
  }
  ContentTags tags(unsigned threads = 1) const {
    return tagContent(file().get(), 0, bytes_.size(), threads, kKey).value();
  }

  TempFolder folder_{TempFolder::Place::kMemory};
  std::vector<uint8_t> bytes_;
};

TEST_F(ContentTagsTest, AreThoseOfTheBlocks) {
  const ContentTags all = tags();
  EXPECT_EQ(all.size, kBytes);
  ASSERT_EQ(all.blocks.size(), kBytes / kTagBlock + 1);
  const base::UniversalHash hash(kKey);
  for (size_t i = 0; i < all.blocks.size(); ++i) {
    const auto rest = std::span(bytes_).subspan(i * kTagBlock);
    EXPECT_EQ(all.blocks[i], hash.of(rest.first(std::min<size_t>(kTagBlock, rest.size())))) << i;
  }
  EXPECT_EQ(tags(4), all);
  EXPECT_EQ(tags(0), all);
}

TEST_F(ContentTagsTest, AreMadeOfTheBytesThatAreHashed) {
  const base::Descriptor file = this->file();
  for (const unsigned threads : {1u, 4u}) {
    ContentTags made;
    const auto digest = hashContent(file.get(), 0, kBytes, threads, kKey, &made);
    ASSERT_TRUE(digest);
    EXPECT_EQ(*digest, hashContent(bytes_));
    EXPECT_EQ(made, tags());
  }
  // A range that begins somewhere.
  ContentTags part;
  const auto digest = hashContent(file.get(), 777, 3 * kTagBlock, 1, kKey, &part);
  EXPECT_EQ(digest.value(), hashContent(std::span(bytes_).subspan(777, 3 * kTagBlock)));
  EXPECT_EQ(part, tagContent(file.get(), 777, 3 * kTagBlock, 1, kKey).value());
}

TEST_F(ContentTagsTest, AChangeIsSeenInItsBlockAndInTheName) {
  const ContentTags before = tags();
  std::set<base::Sha256Digest> names{before.name()};
  for (const size_t position : {size_t{0}, 5 * kTagBlock, 6 * kTagBlock - 1, kBytes - 1}) {
    bytes_[position] ^= 1;
    const ContentTags after = tags();
    for (size_t i = 0; i < before.blocks.size(); ++i)
      EXPECT_EQ(after.blocks[i] != before.blocks[i], i == position / kTagBlock) << i;
    EXPECT_TRUE(names.insert(after.name()).second);
    bytes_[position] ^= 1;
  }
  EXPECT_EQ(tags().name(), before.name());
  ContentTags other = before;
  --other.size;
  EXPECT_TRUE(names.insert(other.name()).second);
}

TEST_F(ContentTagsTest, GapsDoNotCount) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  // From within MiB 2 to within MiB 5; and one that does not lie in the content.
  const ContentGap gaps[] = {{2 * kMiB + 5, 3 * kMiB}, {kBytes - 1, 2}};
  EXPECT_EQ(countedBytes(kBytes, gaps), kBytes - 2 * kMiB);
  EXPECT_EQ(countedBytes(kBytes, {}), kBytes);
  const auto read = [&](std::span<const ContentGap> left) {
    const base::Descriptor file = this->file();
    ContentTags made;
    const auto digest = hashContent(file.get(), 0, kBytes, 2, kKey, &made, left);
    EXPECT_EQ(made, tagContent(file.get(), 0, kBytes, 2, kKey, left).value());
    return std::pair(digest.value(), made.name());
  };
  const auto before = read(gaps);
  EXPECT_NE(before.first, read({}).first);
  EXPECT_NE(before.second, read({}).second);
  for (const auto& [position, counts] : {std::pair(2 * kMiB + 4, true),
                                         {2 * kMiB + 5, false},
                                         {3 * kMiB, false},
                                         {5 * kMiB + 4, false},
                                         {5 * kMiB + 5, true},
                                         {kBytes - 1, true}}) {
    bytes_[position] ^= 1;
    EXPECT_EQ(read(gaps).first != before.first, counts) << position;
    EXPECT_EQ(read(gaps).second != before.second, counts) << position;
    bytes_[position] ^= 1;
  }
}

TEST_F(ContentTagsTest, AShorterFileIsAnError) {
  const base::Descriptor file = this->file();
  EXPECT_EQ(tagContent(file.get(), 1, kBytes, 2, kKey).error().code(), ErrorCode::kBadData);
  ContentTags made;
  EXPECT_EQ(hashContent(file.get(), 1, kBytes, 2, kKey, &made).error().code(), ErrorCode::kBadData);
  EXPECT_TRUE(tagContent(file.get(), 0, 0, 1, kKey).value().blocks.empty());
}

}  // namespace
}  // namespace hearth::cache
