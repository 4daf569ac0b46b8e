// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/model_plans.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "cache/open_store.h"
#include "cache/testing/kind_of_store_test.h"

namespace hearth::cpu {
namespace {

using cache::PlanCapacity;

constexpr base::Sha256Digest kContent{1};
constexpr base::Sha256Digest kOtherContent{2};
constexpr base::Sha256Digest kThis{3};
constexpr base::Sha256Digest kOther{4};

class ModelPlansTest : public testing::Test {
 protected:
  ModelPlansTest() { model_.subgraphs.resize(1); }

  std::shared_ptr<cache::SegmentStore> open(PlanCapacity kind) const {
    return cache::openSegmentStore(cache::optionsOfKind(kind, folder_.path()));
  }

  // A plan of one graph with one segment.
  static PlanDraft draftOf(cache::SegmentStore& store, const base::Sha256Digest& graph,
                           uint64_t number) {
    cache::SegmentRef segment;
    const std::vector<uint8_t> bytes = cache::payload(number, 4096);
    store.publishAsync({.key = cache::segmentKey(number),
                        .payload = bytes,
                        .done = [&](cache::StoreResult<cache::SegmentRef> given) {
                          segment = given.value_or(nullptr);
                        }});
    store.flush();
    EXPECT_NE(segment, nullptr);
    return {graph, {{{0, 0}, {std::make_shared<PackedSegment>(segment), 0, 4096, 1}}}, true};
  }

  static std::vector<base::Sha256Digest> graphsOf(const cache::StoreResult<cache::PlanRef>& plan) {
    if (!plan) return {};
    const auto parsed = PackingMap::parse((*plan)->bytes(), (*plan)->segments().size());
    return parsed ? parsed->graphs : std::vector<base::Sha256Digest>();
  }

  const cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
  graph::Model model_;
  const BuildIdentity build_{.architecture = "x86-64", .cpuFeatures = {"avx2"}};
  const PlanKeys keys_{model_, {}, build_, 2};
};

TEST_F(ModelPlansTest, AStoreThatEndsWithTheProcessHasNone) {
  const auto store = open(PlanCapacity::kNone);
  EXPECT_FALSE(ModelPlans::arePossibleIn(*store));
  EXPECT_EQ(ModelPlans::in(store, keys_), nullptr);
}

TEST_F(ModelPlansTest, AWeightStoreHasAPlanForEachContentAndARecord) {
  const auto store = open(PlanCapacity::kMany);
  ASSERT_TRUE(ModelPlans::arePossibleIn(*store));
  const auto plans = ModelPlans::in(store, keys_);
  ASSERT_TRUE(plans->record());
  EXPECT_TRUE(plans->record()->empty());
  EXPECT_FALSE(plans->find(kContent));

  EXPECT_TRUE(plans->publish(draftOf(*store, kThis, 1), kContent, "model"));
  EXPECT_TRUE(plans->addToRecord(kContent, "model"));
  EXPECT_EQ(graphsOf(plans->find(kContent)), std::vector{kThis});
  EXPECT_FALSE(plans->find(kOtherContent));
  ASSERT_TRUE(plans->record());
  EXPECT_EQ(plans->record()->difference(keys_.origin(kContent)), "");
  EXPECT_NE(plans->record()->difference(keys_.origin(kOtherContent)), "");
  // What is there already changes nothing.
  EXPECT_TRUE(plans->addToRecord(kContent, "model"));

  EXPECT_TRUE(plans->publish(draftOf(*store, kOther, 2), kContent, "model"));
  EXPECT_EQ(graphsOf(plans->find(kContent)), std::vector{kOther});
}

TEST_F(ModelPlansTest, ABundleHasOnePlanForAllSignaturesAndNoRecord) {
  const auto store = open(PlanCapacity::kOne);
  ASSERT_TRUE(ModelPlans::arePossibleIn(*store));
  const auto plans = ModelPlans::in(store, keys_);
  EXPECT_FALSE(plans->record());
  EXPECT_TRUE(plans->publish(draftOf(*store, kThis, 1), kContent, "model"));
  EXPECT_TRUE(plans->addToRecord(kContent, "model"));
  EXPECT_FALSE(plans->record());

  EXPECT_TRUE(plans->publish(draftOf(*store, kOther, 2), kContent, "model"));
  EXPECT_EQ(graphsOf(plans->find(kContent)), (std::vector{kOther, kThis}));
  const auto other = plans->find(kOtherContent);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().reason, cache::StoreReason::kOtherPlan);
}

TEST_F(ModelPlansTest, ABundleSaysForWhichProcessorItWasPacked) {
  const auto store = open(PlanCapacity::kOne);
  const auto plans = ModelPlans::in(store, keys_);
  EXPECT_EQ(plans->otherTarget(), "");
  ASSERT_TRUE(plans->publish(draftOf(*store, kThis, 1), kContent, "model"));
  EXPECT_EQ(plans->otherTarget(), "");

  BuildIdentity board;
  board.architecture = "arm64";
  board.cpuFeatures = {"dotprod", "fp16", "rdm"};
  const PlanKeys boardKeys{model_, {}, board, 2};
  const auto ofBoard = ModelPlans::in(store, boardKeys);
  EXPECT_EQ(ofBoard->otherTarget(), "packed for x86-64 with avx2");
  ASSERT_TRUE(ofBoard->publish(draftOf(*store, kThis, 2), kContent, "model"));
  EXPECT_EQ(plans->otherTarget(), "packed for arm64 with dotprod, fp16 and rdm");

  // Words that no build writes are not repeated.
  for (const char* words : {"", "packed", "for nobody", "packed for \x1b[2J"}) {
    ASSERT_TRUE(store->publishPlan(cache::PlanKey{{9}}, {}, {}, {"model", "hearth-cpu", 0, words}));
    EXPECT_EQ(plans->otherTarget(), "") << words;
  }
}

TEST_F(ModelPlansTest, ArchitecturesShareAStoreAndFindTheirOwnPlans) {
  const auto store = open(PlanCapacity::kMany);
  // Of the model as it is now, as the board's.
  const PlanKeys ownKeys{model_, {}, build_, 2};
  const auto plans = ModelPlans::in(store, ownKeys);
  BuildIdentity board;
  board.driver.fill(1);
  board.packing.fill(2);
  board.architecture = "arm64";
  const PlanKeys boardKeys{model_, {}, board, 2};
  const auto ofBoard = ModelPlans::in(store, boardKeys);

  ASSERT_TRUE(plans->publish(draftOf(*store, kThis, 1), kContent, "model"));
  ASSERT_TRUE(plans->addToRecord(kContent, "model"));
  EXPECT_EQ(ofBoard->find(kContent).error().reason, cache::StoreReason::kAbsent);
  EXPECT_EQ(ofBoard->record()->difference(boardKeys.origin(kContent)),
            "packed for x86-64, not for arm64");
  EXPECT_TRUE(ofBoard->packings()->empty());

  ASSERT_TRUE(ofBoard->publish(draftOf(*store, kOther, 2), kContent, "model"));
  ASSERT_TRUE(ofBoard->addToRecord(kContent, "model"));
  EXPECT_EQ(graphsOf(plans->find(kContent)), std::vector{kThis});
  EXPECT_EQ(graphsOf(ofBoard->find(kContent)), std::vector{kOther});
  EXPECT_EQ((*plans->find(kContent))->description().details, "packed for x86-64 with avx2");
  EXPECT_EQ((*ofBoard->find(kContent))->description().details, "packed for arm64");
  for (const PlanKeys* keys : {&ownKeys, &boardKeys})
    EXPECT_EQ(plans->record()->difference(keys->origin(kContent)), "");
}

TEST_F(ModelPlansTest, AWeightStoreHasNoOtherTarget) {
  const auto store = open(PlanCapacity::kMany);
  const auto plans = ModelPlans::in(store, keys_);
  ASSERT_TRUE(plans->publish(draftOf(*store, kThis, 1), kContent, "model"));
  const BuildIdentity other;
  const PlanKeys otherKeys{model_, {}, other, 2};
  EXPECT_EQ(ModelPlans::in(store, otherKeys)->otherTarget(), "");
}

}  // namespace
}  // namespace hearth::cpu
