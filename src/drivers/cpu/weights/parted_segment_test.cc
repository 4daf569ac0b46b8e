// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/parted_segment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "cache/identity/content_hash.h"
#include "cache/testing/memory_store_test.h"

namespace hearth::cpu {
namespace {

constexpr size_t kHuge = cache::SegmentWriter::kHugePage;

class PartedSegmentTest : public cache::MemoryStoreTest {
 protected:
  // Packs the parts of `bytes`.
  static bool pack(PartedSegment& parted, std::span<const uint8_t> bytes, size_t part) {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(part, bytes.size()))) {
      const auto next = bytes.first(std::min(part, bytes.size()));
      uint8_t* const memory = parted.reserve(next.size());
      if (memory == nullptr || std::ranges::count(std::span(memory, next.size()), 0) !=
                                   static_cast<ptrdiff_t>(next.size()))
        return false;
      std::ranges::copy(next, memory);
      if (!parted.commit()) return false;
    }
    return true;
  }
};

TEST_F(PartedSegmentTest, HoldsAndPublishesTheBytesOfAllParts) {
  const auto store = open();
  memory::Mapping buffer;
  uint64_t number = 0;
  for (const size_t part : {size_t{64}, size_t{700'032}, kHuge, kHuge + 64, 3 * kHuge}) {
    SCOPED_TRACE(part);
    // Few parts of 64 bytes, since each of them is a call.
    const std::vector<uint8_t> bytes =
        cache::payload(++number, part == 64 ? 6400 : 2 * kHuge + 1'000'000 / 64 * 64);
    PartedSegment parted(store->beginWriting(bytes.size()), bytes.size(), std::move(buffer));
    ASSERT_TRUE(pack(parted, bytes, part));
    const auto segment = parted.finish();
    ASSERT_NE(segment, nullptr);
    EXPECT_TRUE(cache::equal({segment->data(), segment->size()}, bytes));
    std::optional<cache::SegmentRef> published;
    store->publishAsync({.written = parted.takeWriter(), .done = [&](auto result) {
                           published = result.value_or(nullptr);
                         }});
    store->settle();
    ASSERT_TRUE(published && *published);
    EXPECT_EQ((*published)->key(), cache::contentSegmentKey(bytes));
    EXPECT_TRUE(cache::equal({segment->data(), segment->size()}, bytes));
    buffer = parted.takeBuffer();
  }
  EXPECT_EQ(store->counters().segmentsWritten, number);
  EXPECT_EQ(open()->verifyAll({})->wrongSegments, 0u);
}

TEST_F(PartedSegmentTest, PartsThatAreNotTheWholeAreNotUsed) {
  const auto store = open();
  const std::vector<uint8_t> bytes = cache::payload(1, 3 * kHuge);
  {
    PartedSegment missing(store->beginWriting(bytes.size()), bytes.size(), {});
    ASSERT_TRUE(pack(missing, std::span(bytes).first(2 * kHuge + 64), kHuge));
    EXPECT_EQ(missing.finish(), nullptr);
    PartedSegment surplus(store->beginWriting(bytes.size()), bytes.size(), {});
    ASSERT_TRUE(pack(surplus, std::span(bytes).first(2 * kHuge + 64), kHuge));
    EXPECT_EQ(surplus.reserve(kHuge), nullptr);
  }
  EXPECT_TRUE(std::filesystem::is_empty(root() / "tmp"));
}

}  // namespace
}  // namespace hearth::cpu
