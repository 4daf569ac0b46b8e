// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packed_weights.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/descriptor.h"

namespace hearth::cpu {
namespace {

constexpr size_t kBytes = 4096;
constexpr WeightPlace kPlace = {0, 0};

// Weights whose creation calls take `found` bytes, all 7, for the source.
class TakenPackingTest : public testing::Test {
 protected:
  void takes(size_t found) {
    weights_.noteSources();
    weights_.describe(source_, {source_, {{0, 0, kBytes}}});
    weights_.takeFrom([found](WeightPlace, const PackingSource&) -> std::optional<PackedPlace> {
      const auto segment = PackedSegment::allocate(found).value();
      std::memset(segment->data(), 7, found);
      return PackedPlace{segment, 0, found, 0};
    });
  }
  // Packs kBytes bytes, all 9, unless they are there.
  const uint8_t* pack() {
    return weights_
        .pack(kPlace, "TEST", &source_, kBytes,
              [](uint8_t* bytes) { std::memset(bytes, 9, kBytes); })
        .value();
  }
  uint64_t packed() const {
    uint64_t sum = 0;
    for (const auto& [kind, bytes] : weights_.packedBytes()) sum += bytes;
    return sum;
  }

  PackedWeights weights_;
  const base::Sha256Digest source_ = base::Sha256::of({});
};

TEST_F(TakenPackingTest, WhatFitsIsUsedAndCounted) {
  takes(kBytes);
  EXPECT_EQ(std::ranges::count(std::span(pack(), kBytes), 7), kBytes);
  EXPECT_EQ(weights_.takenBytes(), kBytes);
  EXPECT_EQ(packed(), 0u);
  EXPECT_EQ(weights_.droppedPresets(), 0u);
}

TEST_F(TakenPackingTest, AnotherSizeIsPackedAndNotCounted) {
  takes(kBytes - 64);
  EXPECT_EQ(std::ranges::count(std::span(pack(), kBytes), 9), kBytes);
  EXPECT_EQ(weights_.takenBytes(), 0u);
  EXPECT_EQ(packed(), kBytes);
  EXPECT_EQ(weights_.droppedPresets(), 1u);
}

// In bundles of machines with smaller pages segments begin in the middle of a page.
TEST(PackedSegmentTest, ARepairLeavesTheOtherBytesOfASegmentInsideAPage) {
  constexpr size_t kPages = 64 << 10;
  constexpr size_t kOffset = kPages + 320;
  constexpr size_t kSize = kPages + 100;
  std::vector<uint8_t> content(3 * kPages);
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<uint8_t>(i * 7 + i / 251);
  const base::Descriptor file(::memfd_create("packed", MFD_CLOEXEC));
  ASSERT_EQ(::write(file.get(), content.data(), content.size()),
            static_cast<ssize_t>(content.size()));
  auto mapping =
      memory::Mapping::ofFile(file.get(), kOffset, kSize, memory::Mapping::Access::kReadOnly);
  ASSERT_TRUE(mapping);
  const auto found = std::make_shared<cache::Segment>(cache::SegmentKey{}, std::move(*mapping));
  EXPECT_EQ(found->mapOver(content.data()).error().code(), ErrorCode::kIo);
  PackedSegment packed(found);
  ASSERT_TRUE(packed.repair([](uint8_t* bytes) -> Status {
    bytes[3] = 42;
    return {};
  }));
  std::vector<uint8_t> right(content.begin() + kOffset, content.begin() + kOffset + kSize);
  right[3] = 42;
  EXPECT_TRUE(std::ranges::equal(std::span(packed.data(), packed.size()), right));
  EXPECT_EQ(packed.published(), nullptr);
  EXPECT_EQ(packed.repairs(), 1u);
}

// The signatures of a small language model have layers of a hundred kilobytes in common.
TEST(SharedPackingTest, OneOfKOwnSegmentBytesIsMadeOnceInAProcess) {
  for (const size_t size : {PackedWeights::kOwnSegment - 64, PackedWeights::kOwnSegment}) {
    const base::Sha256Digest source =
        base::Sha256::of({reinterpret_cast<const uint8_t*>(&size), sizeof size});
    int filled = 0;
    const auto pack = [&](PackedWeights& weights) {
      return weights
          .pack(kPlace, "TEST", &source, size,
                [&](uint8_t* bytes) {
                  std::memset(bytes, 5, size);
                  ++filled;
                })
          .value();
    };
    PackedWeights one;
    PackedWeights other;
    const bool isOwn = size >= PackedWeights::kOwnSegment;
    EXPECT_EQ(pack(one) == pack(other), isOwn);
    EXPECT_EQ(filled, isOwn ? 1 : 2);
    EXPECT_EQ(other.sharedBytes(), isOwn ? size : 0);
  }
}

}  // namespace
}  // namespace hearth::cpu
