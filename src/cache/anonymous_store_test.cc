// SPDX-License-Identifier: Apache-2.0
#include "cache/anonymous_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/sha256.h"
#include "cache/open_store.h"
#include "cache/testing/store_test_util.h"
#include "memory/mapping.h"

namespace hearth::cache {
namespace {

std::shared_ptr<AnonymousStore> makeStore() {
  return std::make_shared<AnonymousStore>(StoreFailure{StoreReason::kOff, "Off."});
}

std::shared_ptr<memory::Mapping> memoryOf(std::span<const uint8_t> bytes) {
  auto memory = std::make_shared<memory::Mapping>(memory::Mapping::anonymous(bytes.size()).value());
  std::ranges::copy(bytes, memory->data());
  return memory;
}

TEST(AnonymousStore, ASegmentIsThePublishersMemoryAndGoesWithItsLastUser) {
  const auto store = makeStore();
  const std::vector<uint8_t> bytes = payload(1, 5000);
  auto memory = memoryOf(bytes);
  const std::weak_ptr<const memory::Mapping> watch = memory;
  SegmentRef published;
  store->publishAsync({.key = segmentKey(1),
                       .payload = {memory->data(), bytes.size()},
                       .owner = memory,
                       .done = [&](StoreResult<SegmentRef> result) {
                         published = *result;
                       }});
  ASSERT_NE(published, nullptr);
  EXPECT_EQ(published->data(), memory->data());
  EXPECT_TRUE(published->mapOver(memory->data()));
  EXPECT_EQ(makeStore()->find(segmentKey(1)).segment, published);
  // Either the memory or the segment suffices to keep the segment findable.
  published.reset();
  EXPECT_TRUE(store->find(segmentKey(1)));
  const SegmentRef found = store->find(segmentKey(1)).segment;
  memory.reset();
  EXPECT_TRUE(equal(store->find(segmentKey(1)).segment->bytes(), bytes));
  EXPECT_FALSE(watch.expired());
  const_cast<SegmentRef&>(found).reset();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(store->find(segmentKey(1)).reason, StoreReason::kAbsent);
}

TEST(AnonymousStore, MemoryWithoutAnOwnerIsCopied) {
  const auto store = makeStore();
  std::vector<uint8_t> bytes = payload(2, 100);
  SegmentRef segment;
  store->publishAsync({.key = segmentKey(2), .payload = bytes, .done = [&](auto result) {
                         segment = *result;
                       }});
  bytes.assign(bytes.size(), 0);
  EXPECT_TRUE(equal(segment->bytes(), payload(2, 100)));
  StoreReason reason = StoreReason::kNone;
  store->publishAsync({.key = segmentKey(3), .payload = {}, .done = [&](auto result) {
                         reason = result.error().reason;
                       }});
  EXPECT_EQ(reason, StoreReason::kBadRequest);
}

TEST(AnonymousStore, ThreadsShareOneBuilderForEachSegment) {
  constexpr uint64_t kSegments = 40;
  std::atomic<int> builds = 0;
  std::atomic<int> failures = 0;
  std::vector<std::vector<SegmentRef>> held(8);
  std::vector<std::thread> threads;
  for (std::vector<SegmentRef>& segments : held)
    threads.emplace_back([&] {
      const auto store = makeStore();
      for (uint64_t i = 100; i < 100 + kSegments; ++i) {
        BuildTicket ticket = store->acquire(segmentKey(i), std::chrono::seconds(120));
        if (ticket.role() == BuildTicket::Role::kFound) {
          segments.push_back(ticket.segment());
        } else if (ticket.role() == BuildTicket::Role::kBuild) {
          ++builds;
          const auto memory = memoryOf(payload(i, 1000));
          store->publishAsync({.key = segmentKey(i),
                               .payload = {memory->data(), 1000},
                               .owner = memory,
                               .ticket = std::move(ticket),
                               .done = [&](auto result) {
                                 segments.push_back(*result);
                               }});
        } else {
          ++failures;
        }
        if (segments.empty() || !equal(segments.back()->bytes(), payload(i, 1000))) ++failures;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(builds.load(), static_cast<int>(kSegments));
}

TEST(AnonymousStore, PlansAndContentHashesServeTheProcess) {
  const auto store = makeStore();
  EXPECT_EQ(store->findPlan(planKey(1)).error().reason, StoreReason::kAbsent);
  const PlanDescription description{.model = "m.tflite", .device = "hearth-cpu"};
  auto plan =
      store->publishPlan(planKey(1), payload(3, 40), std::vector{segmentKey(1)}, description);
  ASSERT_TRUE(plan);
  EXPECT_EQ(makeStore()->findPlan(planKey(1)).value(), *plan);
  EXPECT_EQ((*plan)->description(), description);
  *plan = nullptr;
  EXPECT_EQ(store->findPlan(planKey(1)).error().reason, StoreReason::kAbsent);
  bool wasRun = false;
  store->afterPublishing([&] { wasRun = true; });
  EXPECT_TRUE(wasRun);

  TempFolder folder;
  writeFile(folder.path() / "model", payload(4, 300'000));
  const auto file = base::Descriptor::open(folder.path() / "model", O_RDONLY);
  const uint64_t before = store->counters().bytesHashed;
  const base::Sha256Digest first = store->contentHash(file->get(), 0, 300'000).value();
  EXPECT_EQ(store->contentHash(file->get(), 0, 300'000).value(), first);
  // The digest is that of the bytes, whatever the file and the store.
  std::vector<uint8_t> bytes = payload(4, 300'000);
  writeFile(folder.path() / "copy", bytes);
  bytes[150'000] ^= 1;
  writeFile(folder.path() / "other", bytes);
  const auto copy = base::Descriptor::open(folder.path() / "copy", O_RDONLY);
  const auto other = base::Descriptor::open(folder.path() / "other", O_RDONLY);
  EXPECT_EQ(makeStore()->contentHash(copy->get(), 0, 300'000).value(), first);
  EXPECT_NE(store->contentHash(other->get(), 0, 300'000).value(), first);
  EXPECT_GE(store->counters().bytesHashed - before, 300'000u);
}

TEST(AnonymousStore, AForkedChildUsesWhatTheParentHasAndBuildsItself) {
  const auto store = makeStore();
  const auto memory = memoryOf(payload(5, 500));
  store->publishAsync({.key = segmentKey(5), .payload = {memory->data(), 500}, .owner = memory});
  const BuildTicket building = store->acquire(segmentKey(6));
  ASSERT_EQ(building.role(), BuildTicket::Role::kBuild);
  const int status = waitForChild(startChild([&] {
    if (!store->find(segmentKey(5))) return 1;
    return store->acquire(segmentKey(6)).role() == BuildTicket::Role::kBuild ? 0 : 2;
  }));
  EXPECT_TRUE(succeeded(status)) << status;
}

TEST(OpenSegmentStore, GivesTheStoreOrTheReasonWhyNothingLasts) {
  TempFolder folder;
  StoreOptions options{.path = (folder.path() / "store").string()};
  EXPECT_EQ(openSegmentStore(options)->planCapacity(), PlanCapacity::kMany);
  EXPECT_EQ(openSegmentStore(options)->writability().reason, StoreReason::kNone);
  options.mode = StoreMode::kOff;
  EXPECT_EQ(openSegmentStore(options)->planCapacity(), PlanCapacity::kNone);
  EXPECT_EQ(openSegmentStore(options)->writability().reason, StoreReason::kOff);
  options.mode = StoreMode::kReadWrite;
  writeFile(folder.path() / "file", {});
  options.path = (folder.path() / "file").string();
  EXPECT_EQ(openSegmentStore(options)->planCapacity(), PlanCapacity::kNone);
  EXPECT_EQ(openSegmentStore(options)->writability().reason, StoreReason::kNotAFolder);
  EXPECT_NE(openSegmentStore(options)->writability().message, "");
}

}  // namespace
}  // namespace hearth::cache
