// SPDX-License-Identifier: Apache-2.0
// Segments whose bytes changed on the disk, while the tail or the index stayed right. No start may
// adopt them instead of the right bytes that it holds, and processes that are each too short for a
// complete check must find them together.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "base/descriptor.h"
#include "cache/identity/content_hash.h"
#include "cache/open_store.h"
#include "cache/store/segment_store.h"
#include "cache/testing/kind_of_store_test.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

class DamagedStoreTest : public KindOfStoreTest {
 protected:
  StoreOptions options(StoreMode mode = StoreMode::kReadWrite) const override {
    StoreOptions options = KindOfStoreTest::options(mode);
    options.maxBytes = uint64_t{1} << 40;
    options.boot = parseBootId("01234567-89ab-cdef-0123-456789abcdef");
    return options;
  }

  static StoreResult<SegmentRef> publish(SegmentStore& store, std::span<const uint8_t> bytes,
                                         bool isCopiedFirst = false) {
    StoreResult<SegmentRef> result;
    PublishRequest request{.payload = bytes, .done = [&](StoreResult<SegmentRef> given) {
                             result = std::move(given);
                           }};
    if (isCopiedFirst)
      request.copied = [](const memory::Mapping&) {
      };
    store.publishAsync(std::move(request));
    store.flush();
    return result;
  }

  // Packs the segments that it does not find, as a start does. Returns whether all bytes that it
  // used were right.
  bool start(SegmentStore& store, const std::vector<std::vector<uint8_t>>& payloads,
             int* packed = nullptr) const {
    bool isRight = true;
    bool isNew = !store.findPlan(planKey(1));
    std::vector<SegmentKey> keys;
    std::vector<SegmentRef> segments;
    for (const auto& bytes : payloads) {
      keys.push_back(contentSegmentKey(bytes));
      SegmentRef segment = store.find(keys.back()).segment;
      if (segment == nullptr) {
        segment = publish(store, bytes).value_or(nullptr);
        isNew = true;
        if (packed != nullptr) ++*packed;
      }
      if (segment == nullptr) return false;
      isRight &= equal(segment->bytes(), bytes);
      segments.push_back(std::move(segment));
    }
    if (isNew && !store.publishPlan(planKey(1), payload(1, 100), keys)) return false;
    return isRight;
  }

  // Flips a bit of the payload in its file, and gives the file an old time of change.
  void damage(std::span<const uint8_t> bytes, size_t offset) const {
    const std::vector<uint8_t> pattern(bytes.begin() + static_cast<ptrdiff_t>(offset),
                                       bytes.begin() + static_cast<ptrdiff_t>(offset) + 64);
    int flipped = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      if (!entry.is_regular_file()) continue;
      const std::vector<uint8_t> file = readFile(entry.path());
      const auto found = std::search(file.begin(), file.end(),
                                     std::boyer_moore_searcher(pattern.begin(), pattern.end()));
      if (found == file.end()) continue;
      const fs::perms mode = entry.status().permissions();
      fs::permissions(entry.path(), fs::perms(0600));
      const auto descriptor = base::Descriptor::open(entry.path(), O_WRONLY);
      ASSERT_TRUE(descriptor);
      const auto wrong = static_cast<uint8_t>(pattern[0] ^ 1);
      ASSERT_EQ(::pwrite(descriptor->get(), &wrong, 1, found - file.begin()), 1);
      age(entry.path());
      fs::permissions(entry.path(), mode);
      ++flipped;
    }
    ASSERT_EQ(flipped, 1);
  }

  // Invalidates whatever was remembered about the file.
  static void age(const fs::path& path) {
    static int64_t time = 1'600'000'000;
    const timespec times[2] = {{++time, 0}, {time, 0}};
    ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  }
};

// A cold start holds the right bytes. They replace the wrong ones that the store has under the same
// key, however they are published.
TEST_P(DamagedStoreTest, AColdStartAdoptsNothingThatIsWrong) {
  const std::vector<uint8_t> bytes = payload(1, (3u << 20) + 100);
  for (const bool isCopiedFirst : {false, true}) {
    SCOPED_TRACE(isCopiedFirst);
    ASSERT_TRUE(start(*open(), {bytes}));
    damage(bytes, (2u << 20) + 50);
    const auto store = open();
    const StoreResult<SegmentRef> adopted = publish(*store, bytes, isCopiedFirst);
    ASSERT_TRUE(adopted) << adopted.error().message;
    EXPECT_TRUE(equal((*adopted)->bytes(), bytes));
    EXPECT_FALSE((*adopted)->isCorrupt());
    EXPECT_EQ(store->counters().segmentsCorrupt, 1u);
    ASSERT_TRUE(
        store->publishPlan(planKey(1), payload(1, 100), std::vector{contentSegmentKey(bytes)}));
    // The next process finds the right bytes, too.
    EXPECT_TRUE(start(*open(StoreMode::kReadOnly), {bytes}));
  }
}

// The same if this process has already mapped the wrong bytes, and others use them meanwhile.
TEST_P(DamagedStoreTest, AColdStartAdoptsNothingWrongThatIsMappedAlready) {
  const std::vector<uint8_t> bytes = payload(1, (3u << 20) + 100);
  ASSERT_TRUE(start(*open(), {bytes}));
  damage(bytes, (2u << 20) + 50);
  const auto store = open();
  std::vector<SegmentKey> wrong;
  const auto handler =
      store->addCorruptionHandler([&](const SegmentKey& key) { wrong.push_back(key); });
  const FoundSegment found = store->find(contentSegmentKey(bytes));
  ASSERT_TRUE(found);
  const StoreResult<SegmentRef> adopted = publish(*store, bytes);
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_TRUE(equal((*adopted)->bytes(), bytes));
  EXPECT_TRUE(found.segment->isCorrupt());
  EXPECT_EQ(wrong, std::vector{contentSegmentKey(bytes)});
}

// Right bytes are adopted: the store does not grow.
TEST_P(DamagedStoreTest, AColdStartAdoptsWhatIsRight) {
  const std::vector<uint8_t> bytes = payload(1, (3u << 20) + 100);
  ASSERT_TRUE(start(*open(), {bytes}));
  for (const bool isCopiedFirst : {false, true}) {
    const auto store = open();
    const StoreResult<SegmentRef> adopted = publish(*store, bytes, isCopiedFirst);
    ASSERT_TRUE(adopted) << adopted.error().message;
    EXPECT_TRUE(equal((*adopted)->bytes(), bytes));
    // A bundle is always rewritten as a whole.
    if (GetParam() == PlanCapacity::kMany) {
      EXPECT_EQ(store->counters().segmentsWritten, 0u);
    }
    EXPECT_EQ(store->counters().segmentsCorrupt, 0u);
  }
}

// The mapping of the start whose check finds the damage may be gone by then. Users of other
// mappings of the file are notified, too.
TEST_P(DamagedStoreTest, EveryMappingOfTheFileIsFoundWrong) {
  const std::vector<uint8_t> bytes = payload(1, (3u << 20) + 100);
  const SegmentKey key = contentSegmentKey(bytes);
  ASSERT_TRUE(start(*open(), {bytes}));
  damage(bytes, (1u << 20) + 50);
  const auto store = open();
  ASSERT_TRUE(store->findPlan(planKey(1)));
  ASSERT_TRUE(store->find(key));  // freed at once
  const SegmentRef later = store->find(key).segment;
  ASSERT_TRUE(later);
  size_t told = 0;
  const auto handler =
      store->addCorruptionHandler([&](const SegmentKey& found) { told += found == key; });
  store->checkBeforeExit();
  EXPECT_TRUE(later->isCorrupt());
  EXPECT_GE(told, 1u);
  EXPECT_FALSE(store->find(key));
}

// A segment that is marked as lasting some seconds after it was checked, or written, counts as
// checked from then on.
TEST_P(DamagedStoreTest, WhatChangesBeforeItIsMarkedDoesNotCountAsChecked) {
  const std::vector<uint8_t> bytes = payload(1, (3u << 20) + 100);
  {
    const auto store = open();
    ASSERT_TRUE(start(*store, {bytes}));
    store->flush();
    damage(bytes, (2u << 20) + 50);
    store->settle();
  }
  const auto store = open();
  EXPECT_FALSE(start(*store, {bytes}));
  store->settle();
  EXPECT_EQ(store->counters().segmentsCorrupt, 1u);
  EXPECT_TRUE(start(*store, {bytes}));
}

// No process lives until its background check begins, and none can check everything before it
// exits.
TEST_P(DamagedStoreTest, ShortProcessesFindTheDamageTogether) {
  const std::vector<std::vector<uint8_t>> payloads = {payload(1, (21u << 20) + 5),
                                                      payload(2, (48u << 20) + 7)};
  size_t all = 0;
  for (const auto& bytes : payloads) all += bytes.size();
  ASSERT_GT(all, 2 * SegmentStore::kCheckedBeforeExit);
  const auto process = [&] {
    const int status = waitForChild(startChild([&] {
      const auto store = open();
      const bool isRight = start(*store, payloads);
      store->checkFound();
      store->flush();
      store->checkBeforeExit();
      return isRight ? 0 : 1;
    }));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
  };
  ASSERT_EQ(process(), 0);
  for (size_t i = 0; i < payloads.size(); ++i) {
    SCOPED_TRACE(i);
    damage(payloads[i], payloads[i].size() - 1000);
    // Each process checks at least one part, so no more processes than parts are needed.
    size_t starts = 1;
    int result = process();
    EXPECT_EQ(result, 1);
    for (; result == 1 && starts <= all / SegmentStore::kLeastCheckedBeforeExit; ++starts)
      result = process();
    EXPECT_EQ(result, 0);
    EXPECT_EQ(process(), 0);
  }
}

// A check continues where the last process left it, and is complete at some time.
TEST_P(DamagedStoreTest, ShortProcessesCheckEachPartOnce) {
  const std::vector<std::vector<uint8_t>> payloads = {payload(1, (50u << 20) + 5),
                                                      payload(2, (30u << 20) + 5)};
  ASSERT_TRUE(start(*open(), payloads));
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
    if (entry.is_regular_file()) age(entry.path());
  uint64_t checked = 0;
  size_t starts = 0;
  for (bool isOver = false; !isOver && starts < 100; ++starts) {
    const auto store = open();
    ASSERT_TRUE(store->find(contentSegmentKey(payloads[0])));
    ASSERT_TRUE(store->find(contentSegmentKey(payloads[1])));
    store->checkBeforeExit();
    const uint64_t bytes = store->counters().bytesChecked;
    checked += bytes;
    isOver = bytes == 0;
  }
  EXPECT_LT(starts, 100u);
  EXPECT_EQ(checked, payloads[0].size() + payloads[1].size());
}

// A wrong segment of a system store cannot be removed. It is remembered as wrong, and the user's
// own store holds the right bytes from then on.
TEST(DamagedSystemStore, ShortProcessesRepairItInTheUsersStore) {
  const TempFolder folder(TempFolder::Place::kMemory);
  StoreOptions system{.path = folder.path() / "system", .maxBytes = uint64_t{1} << 40};
  system.boot = parseBootId("01234567-89ab-cdef-0123-456789abcdef");
  const std::vector<uint8_t> bytes = payload(1, (3u << 20) + 100);
  const SegmentKey key = contentSegmentKey(bytes);
  {
    const auto store = WeightStore::open(system).value();
    ASSERT_TRUE(store->publish(key, bytes));
    ASSERT_TRUE(store->publishPlan(planKey(1), payload(1, 100), std::vector{key}));
    store->settle();
  }
  const fs::path file = folder.path() / "system" / "segments" / StoreFolder::segmentPath(key, true);
  std::vector<uint8_t> wrong = readFile(file);
  wrong[2u << 20] ^= 1;
  writeFile(file, wrong);
  StoreOptions own = system;
  own.path = folder.path() / "own";
  own.systemStores = {system.path};
  const auto process = [&] {
    const int status = waitForChild(startChild([&] {
      const auto store = WeightStore::open(own).value();
      if (!store->findPlan(planKey(1))) return 3;
      SegmentRef segment = store->find(key).segment;
      if (segment == nullptr) segment = store->publish(key, bytes).value_or(nullptr);
      if (segment == nullptr) return 2;
      const bool isRight = equal(segment->bytes(), bytes);
      store->checkBeforeExit();
      return isRight ? 0 : 1;
    }));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
  };
  // A process checks for 0.1 s, but a megabyte at least: one of the first three finds the damage.
  int uses = 0;
  while (process() == 1) ASSERT_LE(++uses, 3);
  EXPECT_GE(uses, 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(process(), 0);
  EXPECT_EQ(readFile(file), wrong);
}

// A plan of a system store may lack places that the user's own plan has.
TEST(DamagedSystemStore, TheUsersOwnPlanIsFoundFirst) {
  const TempFolder folder(TempFolder::Place::kMemory);
  StoreOptions system{.path = folder.path() / "system", .maxBytes = uint64_t{1} << 40};
  ASSERT_TRUE(WeightStore::open(system).value()->publishPlan(planKey(1), payload(1, 100), {}));
  StoreOptions own = system;
  own.path = folder.path() / "own";
  own.systemStores = {system.path};
  const auto store = WeightStore::open(own).value();
  EXPECT_TRUE(equal(store->findPlan(planKey(1)).value()->bytes(), payload(1, 100)));
  ASSERT_TRUE(store->publishPlan(planKey(1), payload(2, 100), {}));
  EXPECT_TRUE(equal(store->findPlan(planKey(1)).value()->bytes(), payload(2, 100)));
}

std::string kindName(const testing::TestParamInfo<PlanCapacity>& info) {
  return info.param == PlanCapacity::kMany ? "Store" : "Bundle";
}

INSTANTIATE_TEST_SUITE_P(Kinds, DamagedStoreTest,
                         testing::Values(PlanCapacity::kMany, PlanCapacity::kOne), kindName);

}  // namespace
}  // namespace hearth::cache
