// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/segment_publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "cache/open_store.h"
#include "cache/testing/kind_of_store_test.h"

namespace hearth::cpu {
namespace {

using testing::StartsWith;

constexpr size_t kSize = 8192;

class SegmentPublisherTest : public testing::Test {
 protected:
  static std::shared_ptr<PackedSegment> packed(uint64_t number) {
    auto segment = PackedSegment::allocate(kSize).value();
    std::ranges::copy(cache::payload(number, kSize), segment->data());
    return segment;
  }
  std::shared_ptr<cache::SegmentStore> open(
      cache::StoreMode mode = cache::StoreMode::kReadWrite) const {
    cache::StoreOptions options = cache::optionsOfKind(cache::PlanCapacity::kMany, folder_.path());
    options.mode = mode;
    return cache::openSegmentStore(options);
  }

  const cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
  const std::shared_ptr<StartOutcome> outcome_ = std::make_shared<StartOutcome>();
};

TEST_F(SegmentPublisherTest, OneOfTheModelsThatShareASegmentWritesIt) {
  const auto store = open();
  for (const bool isCopiedFirst : {false, true}) {
    const uint64_t number = isCopiedFirst ? 2 : 1;
    const auto shared = packed(number);
    for (int model = 0; model < 2; ++model)
      SegmentPublisher(store, outcome_).publish(shared, kSize, isCopiedFirst);
    store->flush();
    EXPECT_EQ(store->counters().segmentsWritten, number);
    ASSERT_NE(shared->published(), nullptr);
    EXPECT_TRUE(cache::equal(shared->published()->bytes(), cache::payload(number, kSize)));
    EXPECT_TRUE(cache::equal({shared->data(), kSize}, cache::payload(number, kSize)));
  }
  EXPECT_EQ(outcome_->reason(), "");
}

TEST_F(SegmentPublisherTest, ABeginningIsASegment) {
  const auto store = open();
  const auto group = packed(1);
  SegmentPublisher(store, outcome_).publish(group, 100);
  store->flush();
  ASSERT_NE(group->published(), nullptr);
  EXPECT_EQ(group->published()->size(), 100u);
}

TEST_F(SegmentPublisherTest, AFailureIsInTheReportAndLetsAnotherModelTry) {
  open();
  const auto shared = packed(1);
  const auto store = open(cache::StoreMode::kReadOnly);
  SegmentPublisher(store, outcome_).publish(shared, kSize);
  store->flush();
  EXPECT_EQ(shared->published(), nullptr);
  EXPECT_THAT(outcome_->reason(), StartsWith("read-only"));
  EXPECT_TRUE(shared->claimPublication());
}

TEST_F(SegmentPublisherTest, PublishesWhatTheStoreLacks) {
  const auto store = open();
  PackedWeights weights(true);
  const auto pack = [&](WeightPlace place, size_t size) {
    return weights.pack(place, "TEST", nullptr, size, [&](uint8_t* bytes) {
      std::fill_n(bytes, size, static_cast<uint8_t>(place.operation + 1));
    });
  };
  for (uint32_t operation = 0; operation < 3; ++operation) ASSERT_TRUE(pack({operation, 0}, 1000));
  ASSERT_TRUE(pack({3, 0}, PackedWeights::kOwnSegment));
  EXPECT_TRUE(SegmentPublisher::hasUnpublished(weights));
  const SegmentPublisher publisher(store, outcome_);
  publisher.publishAll(weights);
  store->flush();
  EXPECT_FALSE(SegmentPublisher::hasUnpublished(weights));
  // The small ones are one segment.
  EXPECT_EQ(store->counters().segmentsWritten, 2u);
  publisher.publishAll(weights);
  store->flush();
  EXPECT_EQ(store->counters().segmentsWritten, 2u);
}

TEST_F(SegmentPublisherTest, FullGroupsOfSmallPackingsArePublishedWhileOthersArePacked) {
  const auto store = open();
  const SegmentPublisher publisher(store, outcome_);
  PackedWeights weights(true, 10'000);
  weights.onPacked([&](const std::shared_ptr<PackedSegment>& segment, size_t size) {
    publisher.publish(segment, size, true);
  });
  // Three of these fit into a group.
  constexpr size_t kBytes = 3200;
  for (uint32_t operation = 0; operation < 8; ++operation)
    ASSERT_TRUE(weights.pack({operation, 0}, "TEST", nullptr, kBytes, [&](uint8_t* bytes) {
      std::fill_n(bytes, kBytes, static_cast<uint8_t>(operation + 1));
    }));
  store->settle();
  EXPECT_EQ(store->counters().segmentsWritten, 2u);
  publisher.publishAll(weights);
  store->settle();
  EXPECT_EQ(store->counters().segmentsWritten, 3u);
  EXPECT_FALSE(SegmentPublisher::hasUnpublished(weights));
  for (const auto& [place, packed] : weights.places()) {
    EXPECT_EQ(std::ranges::count(weights.bytesOf(place), place.operation + 1),
              static_cast<ptrdiff_t>(kBytes));
    EXPECT_EQ(packed.segment->published()->size(), place.operation < 6 ? 3 * kBytes : 2 * kBytes);
    EXPECT_EQ(packed.segment->size(), packed.segment->published()->size());
  }
}

}  // namespace
}  // namespace hearth::cpu
