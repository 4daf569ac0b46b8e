// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/known_packings.h"

#include <gtest/gtest.h>

namespace hearth::cpu {
namespace {

base::Sha256Digest digest(uint32_t number) {
  return base::Sha256::of({reinterpret_cast<const uint8_t*>(&number), sizeof number});
}

TEST(KnownPackingsTest, BytesKeepTheEntries) {
  KnownPackings known;
  EXPECT_TRUE(known.empty());
  EXPECT_TRUE(KnownPackings::parse(known.encoded()).empty());
  for (uint32_t i = 0; i < 100; ++i)
    known.add(digest(i), {{digest(1000 + i)}, 64 * i, 2000 + i, i});
  const KnownPackings read = KnownPackings::parse(known.encoded());
  EXPECT_EQ(read.size(), 100u);
  for (uint32_t i = 0; i < 100; ++i) {
    const KnownPackings::Entry* const entry = read.find(digest(i));
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->segment, cache::SegmentKey{digest(1000 + i)});
    EXPECT_EQ(entry->offset, 64 * i);
    EXPECT_EQ(entry->size, 2000 + i);
    EXPECT_EQ(entry->seed, i);
  }
  EXPECT_EQ(read.find(digest(100)), nullptr);
}

TEST(KnownPackingsTest, OlderEntriesFillWhatNewerOnesLeave) {
  KnownPackings older;
  for (uint32_t i = 0; i < 100; ++i) older.add(digest(i), {{digest(1)}, 64 * i, 64, 0});
  KnownPackings known;
  for (uint32_t i = 50; i < 50 + KnownPackings::kMost - 20; ++i)
    known.add(digest(i), {{digest(2)}, 64 * i, 64, 0});
  known.addOlder(older);
  EXPECT_EQ(known.size(), KnownPackings::kMost);
  EXPECT_EQ(known.find(digest(70))->segment, cache::SegmentKey{digest(2)});
}

TEST(KnownPackingsTest, MalformedBytesGiveNone) {
  KnownPackings known;
  known.add(digest(1), {{digest(2)}, 0, 64, 3});
  std::vector<uint8_t> bytes = known.encoded();
  for (size_t size = 1; size < bytes.size(); ++size)
    EXPECT_TRUE(KnownPackings::parse(std::span(bytes).first(size)).empty());
  bytes.push_back(0);
  EXPECT_TRUE(KnownPackings::parse(bytes).empty());
}

}  // namespace
}  // namespace hearth::cpu
