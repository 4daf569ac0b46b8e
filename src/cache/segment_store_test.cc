// SPDX-License-Identifier: Apache-2.0
// Tests what every kind of segment store promises, and the known ways in which weight caches fail
// (docs/testing.md lists both).
#include "cache/store/segment_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/crash_point.h"
#include "base/descriptor.h"
#include "cache/bundle/bundle_file.h"
#include "cache/open_store.h"
#include "cache/testing/crash_points.h"
#include "cache/testing/kind_of_store_test.h"
#include "cache/testing/shared_with_children.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

class SegmentStoreTest : public KindOfStoreTest {
 protected:
  static SegmentRef publish(SegmentStore& store, const SegmentKey& key,
                            std::span<const uint8_t> bytes, BuildTicket ticket = {}) {
    SegmentRef segment;
    store.publishAsync(
        {.key = key, .payload = bytes, .ticket = std::move(ticket), .done = [&](auto result) {
           segment = result.value_or(nullptr);
         }});
    store.flush();
    return segment;
  }

  // A start. Returns the number of segments that it had to build; nothing if something is wrong.
  static std::optional<int> start(SegmentStore& store, uint64_t plan,
                                  std::span<const uint64_t> numbers) {
    int built = 0;
    std::vector<SegmentKey> keys;
    std::vector<SegmentRef> segments;
    for (const uint64_t number : numbers) {
      keys.push_back(segmentKey(number));
      BuildTicket ticket = store.acquire(keys.back(), std::chrono::seconds(120));
      SegmentRef segment = ticket.segment();
      if (segment == nullptr) {
        ++built;
        segment = publish(store, keys.back(), payload(number, 9000), std::move(ticket));
      }
      if (segment == nullptr || !equal(segment->bytes(), payload(number, 9000)))
        return std::nullopt;
      segments.push_back(std::move(segment));
    }
    if ((built > 0 || !store.findPlan(planKey(plan))) &&
        !store.publishPlan(planKey(plan), payload(plan, 300), keys))
      return std::nullopt;
    return built;
  }
};

// The stores whose content outlives a process.
class KeptStoreTest : public SegmentStoreTest {};

TEST_P(SegmentStoreTest, AKeyFindsItsOwnBytesOnly) {
  const auto store = open();
  const SegmentRef one = publish(*store, segmentKey(1), payload(1, 5000));
  const SegmentRef two = publish(*store, segmentKey(2), payload(2, 70));
  ASSERT_TRUE(one && two);
  EXPECT_TRUE(equal(store->find(segmentKey(1)).segment->bytes(), payload(1, 5000)));
  EXPECT_TRUE(equal(store->find(segmentKey(2)).segment->bytes(), payload(2, 70)));
  for (size_t bit = 0; bit < 256; bit += 17) {
    SegmentKey other = segmentKey(1);
    other.bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    EXPECT_EQ(store->find(other).reason, StoreReason::kAbsent);
  }
}

TEST_P(SegmentStoreTest, ASegmentGoesThroughItsStages) {
  const auto store = open();
  EXPECT_EQ(store->find(segmentKey(3)).reason, StoreReason::kAbsent);
  BuildTicket ticket = store->acquire(segmentKey(3));
  ASSERT_EQ(ticket.role(), BuildTicket::Role::kBuild);
  EXPECT_EQ(ticket.segment(), nullptr);
  EXPECT_EQ(store->find(segmentKey(3)).reason, StoreReason::kAbsent);
  const SegmentRef segment = publish(*store, segmentKey(3), payload(3, 300), std::move(ticket));
  ASSERT_NE(segment, nullptr);
  const BuildTicket again = store->acquire(segmentKey(3));
  EXPECT_EQ(again.role(), BuildTicket::Role::kFound);
  EXPECT_EQ(again.segment(), segment);
  // Publishing again returns the first segment; publishing without a ticket works as well.
  EXPECT_EQ(publish(*store, segmentKey(3), payload(3, 300)), segment);
  const SegmentRef outside = publish(*store, segmentKey(4), payload(4, 400));
  EXPECT_EQ(store->find(segmentKey(4)).segment, outside);
  segment->prefault();
  EXPECT_TRUE(equal(segment->bytes(), payload(3, 300)));
}

TEST_P(SegmentStoreTest, TwoPlansShareASegmentAndASecondStepAddsToTheFirst) {
  const auto store = open();
  const uint64_t prefill[] = {10, 11};
  const uint64_t decode[] = {10, 11, 12};
  const SegmentRef held[] = {publish(*store, segmentKey(10), payload(10, 9000)),
                             publish(*store, segmentKey(11), payload(11, 9000))};
  EXPECT_EQ(start(*store, 1, prefill), 0);
  EXPECT_EQ(start(*store, 2, decode), 1);
  EXPECT_EQ(store->counters().segmentsCorrupt, 0u);
  if (isKept()) {
    EXPECT_EQ(store->counters().segmentsWritten, 3u);
    EXPECT_EQ(start(*open(StoreMode::kStrict), 2, decode), 0);
  }
}

TEST_P(SegmentStoreTest, FreesThePayloadsThatWaitToBeWritten) {
  const auto store = open();
  auto bytes = std::make_shared<const std::vector<uint8_t>>(payload(13, 9000));
  const std::weak_ptr<const void> queued = bytes;
  bool isPublished = false;
  store->publishAsync(
      {.key = segmentKey(13), .payload = *bytes, .owner = bytes, .done = [&](const auto& result) {
         isPublished = result.has_value();
       }});
  bytes.reset();
  EXPECT_EQ(store->freeMemory(), isKept());
  EXPECT_TRUE(isPublished);
  EXPECT_TRUE(queued.expired());
}

TEST_P(KeptStoreTest, TheNextProcessFindsWhatTheLastOneBuilt) {
  const uint64_t numbers[] = {20, 21, 22};
  EXPECT_EQ(waitForChild(startChild([&] { return start(*open(), 5, numbers) == 3 ? 0 : 1; })), 0);
  EXPECT_EQ(waitForChild(startChild([&] {
              // Makes addresses differ from those in the first process.
              void* const shift =
                  ::mmap(nullptr, size_t{64} << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return shift != MAP_FAILED && start(*open(), 5, numbers) == 0 ? 0 : 1;
            })),
            0);
}

// E1: a look-up that misses must be repaired permanently.
TEST_P(KeptStoreTest, AMissIsRepairedForTheNextStart) {
  const uint64_t few[] = {30, 31};
  const uint64_t more[] = {30, 31, 32};
  EXPECT_EQ(start(*open(), 6, few), 2);
  EXPECT_EQ(start(*open(), 6, more), 1);
  EXPECT_EQ(start(*open(), 6, more), 0);
  EXPECT_EQ(start(*open(StoreMode::kStrict), 6, more), 0);
}

// E2: a process must be able to read while others build a new store.
TEST_P(KeptStoreTest, AReaderSurvivesThatOthersBuildAnew) {
  const uint64_t numbers[] = {40, 41};
  ASSERT_EQ(start(*open(), 7, numbers), 2);
  struct Shared {
    std::atomic<int> rounds;
    std::atomic<bool> stop;
  };
  const SharedWithChildren<Shared> shared;
  const pid_t reader = startChild([&] {
    const auto store = open();
    const SegmentRef segments[] = {store->find(segmentKey(40)).segment,
                                   store->find(segmentKey(41)).segment};
    if (!segments[0] || !segments[1]) return 1;
    while (!shared->stop.load()) {
      if (!equal(segments[0]->bytes(), payload(40, 9000))) return 2;
      if (!equal(segments[1]->bytes(), payload(41, 9000))) return 3;
      shared->rounds.fetch_add(1);
    }
    return 0;
  });
  int status = 0;
  bool hasEnded = false;
  const auto waitBeyond = [&](int rounds) {
    while (shared->rounds.load() == rounds && !hasEnded) {
      hasEnded = ::waitpid(reader, &status, WNOHANG) == reader;
      ::usleep(100);
    }
  };
  waitBeyond(0);  // it has both segments
  for (uint64_t round = 0; round < 20; ++round) {
    const int seen = shared->rounds.load();
    // Another library publishes a plan with other segments; then everything is deleted.
    const uint64_t others[] = {40, 100 + round};
    EXPECT_TRUE(start(*open(), 100 + round, others));
    removeFolder(folder_.path() / "store");
    fs::remove(folder_.path() / "bundle");
    waitBeyond(seen);
  }
  shared->stop = true;
  EXPECT_EQ(hasEnded ? status : waitForChild(reader), 0);
}

// The background check begins when a start is over; a process that ends before that checks a small
// part. damaged_store_test.cc tests segments of more than one part.
TEST_P(KeptStoreTest, AProcessThatEndsBeforeTheCheckBeginsChecksAPart) {
  constexpr uint64_t kNumber = 1;
  const std::vector<uint8_t> bytes = payload(kNumber, 5000);
  {
    const auto store = open();
    BuildTicket ticket = store->acquire(segmentKey(kNumber), std::chrono::seconds(120));
    ASSERT_TRUE(publish(*store, segmentKey(kNumber), bytes, std::move(ticket)));
    ASSERT_TRUE(
        store->publishPlan(planKey(kNumber), payload(90, 300), std::vector{segmentKey(kNumber)}));
  }
  // Flips a byte of the payload in its file.
  std::vector<uint8_t> pattern(bytes.begin() + 100, bytes.begin() + 164);
  bool isFlipped = false;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    if (!entry.is_regular_file()) continue;
    std::vector<uint8_t> file = readFile(entry.path());
    const auto found = std::ranges::search(file, pattern);
    if (found.empty()) continue;
    ASSERT_FALSE(isFlipped);
    isFlipped = true;
    const auto offset = found.begin() - file.begin();
    fs::permissions(entry.path(), fs::perms(0600));
    const auto descriptor = base::Descriptor::open(entry.path(), O_WRONLY);
    ASSERT_TRUE(descriptor);
    const auto flipped = static_cast<uint8_t>(pattern[0] ^ 1);
    ASSERT_EQ(::pwrite(descriptor->get(), &flipped, 1, offset), 1);
    fs::permissions(entry.path(), fs::perms(0400));
  }
  ASSERT_TRUE(isFlipped);
  // If nothing can be remembered, a sample is checked (here everything), and the file stays.
  for (const StoreMode mode : {StoreMode::kReadOnly, StoreMode::kReadWrite}) {
    const auto store = open(mode);
    const FoundSegment found = store->find(segmentKey(kNumber));
    ASSERT_TRUE(found) << storeReasonName(found.reason);
    EXPECT_FALSE(found.segment->isCorrupt());
    store->checkFound();
    store->checkBeforeExit();
    EXPECT_TRUE(found.segment->isCorrupt());
  }
  EXPECT_FALSE(open()->find(segmentKey(kNumber)));
}

#ifdef HEARTH_TEST_HOOKS
// E3: a start that dies right after its beginning must leave nothing that later starts take for a
// cache.
TEST_P(KeptStoreTest, AStartThatDiesAtOnceLeavesNoEmptyCache) {
  const uint64_t numbers[] = {50, 51};
  const char* const point =
      GetParam() == PlanCapacity::kOne ? "bundle.after_create" : "object.after_create";
  for (int launch = 0; launch < 3; ++launch)
    EXPECT_TRUE(
        wasKilled(endOfCrashing(point, [&] { return start(*open(), 8, numbers) ? 1 : 2; })));
  EXPECT_EQ(start(*open(), 8, numbers), 2);
  EXPECT_EQ(start(*open(), 8, numbers), 0);
}
#endif

TEST_P(KeptStoreTest, FactsAreThereForTheNextProcess) {
  const std::string key("a fact\0about this", 17);
  const std::vector<uint8_t> value = payload(6, 32);
  {
    const auto store = open();
    EXPECT_FALSE(store->recall(key));
    store->remember(std::vector<Fact>{{"another", payload(5, 32)}, {key, value}});
    EXPECT_EQ(store->recall(key), value);
    EXPECT_EQ(store->recall("another"), payload(5, 32));
    EXPECT_FALSE(store->recall("a fact"));
    // A bundle is created with its first plan.
    const uint64_t numbers[] = {1};
    EXPECT_EQ(start(*store, 1, numbers), 1);
  }
  EXPECT_EQ(open()->recall(key), value);
  EXPECT_EQ(open(StoreMode::kReadOnly)->recall(key), value);
  open(StoreMode::kReadOnly)->remember(std::vector<Fact>{{key, payload(8, 32)}});
  EXPECT_EQ(open()->recall(key), value);
}

// E6: the same path with another model of the same size. The store must never return the old
// digest, on which the plan's key depends.
TEST_P(SegmentStoreTest, AModelThatChangedIsNoticedHoweverItWasWritten) {
  TempFolder disk;
  const fs::path model = disk.path() / "model.tflite";
  const auto hash = [&] {
    const auto file = base::Descriptor::open(model, O_RDONLY);
    return open()->contentHash(file->get(), 0, 100'000).value();
  };
  const auto put = [&](const fs::path& path, uint64_t number) {
    const base::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const std::vector<uint8_t> bytes = payload(number, 100'000);
    ASSERT_EQ(::pwrite(file.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  };
  put(model, 1);
  auto last = hash();
  EXPECT_EQ(hash(), last);
  const auto expectNoticed = [&](const char* how) {
    const auto current = hash();
    EXPECT_NE(current, last) << how;
    last = current;
  };
  put(model, 2);
  expectNoticed("written in place");
  put(disk.path() / "new", 3);
  fs::rename(disk.path() / "new", model);
  expectNoticed("renamed over");
  const fs::file_time_type time = fs::last_write_time(model);
  put(disk.path() / "copy", 4);
  fs::last_write_time(disk.path() / "copy", time);
  fs::copy_file(disk.path() / "copy", model, fs::copy_options::overwrite_existing);
  fs::last_write_time(model, time);
  expectNoticed("copied over with its time of modification");
}

// E8: nothing may be cut off at 4 GiB. The payload is a hole.
TEST_P(KeptStoreTest, SegmentsBeyondFourGibibytesAreWhole) {
  constexpr uint64_t kSize = (uint64_t{4} << 30) + (uint64_t{5} << 20) + 77;
  SegmentInfo large{.key = segmentKey(60), .payloadSize = kSize, .writtenIn = currentBootId()};
  const std::vector<uint8_t> zeros(kSegmentBlock);
  large.blocks.assign(kSize / kSegmentBlock, base::Sha256::of(zeros));
  large.blocks.push_back(base::Sha256::of(std::span(zeros).first(kSize % kSegmentBlock)));
  const auto write = [&](const fs::path& path, std::span<const uint8_t> bytes, uint64_t offset,
                         uint64_t size) {
    const base::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(writeAt(file.get(), bytes.data(), bytes.size(), offset));
    if (size != 0) {
      ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
    }
  };
  const std::vector<uint8_t> behind = payload(61, 9000);
  if (GetParam() == PlanCapacity::kMany) {
    (void)open();
    const fs::path path =
        folder_.path() / "store" / "segments" / StoreFolder::segmentPath(large.key, true);
    fs::create_directory(path.parent_path());
    fs::permissions(path.parent_path(), fs::perms(0700));
    write(path, makeSegmentTail(large), kSize, 0);
    ASSERT_NE(publish(*open(), segmentKey(61), behind), nullptr);
  } else {
    BundleContent content;
    large.offset = bundlePayloadOffset(0, kSize);
    SegmentInfo small{.key = segmentKey(61),
                      .offset = bundlePayloadOffset(large.offset + kSize, behind.size()),
                      .payloadSize = behind.size(),
                      .blocks = {base::Sha256::of(behind)}};
    content.segments = {large, small};
    content.plan = {.key = planKey(9), .segments = {large.key, small.key}};
    BundleHead head{.writtenIn = currentBootId()};
    const auto index = makeBundleIndex(content, small.offset + behind.size(), head);
    ASSERT_TRUE(index);
    const fs::path path = folder_.path() / "bundle";
    write(path, makeBundleHead(head), 0, head.fileSize);
    write(path, behind, small.offset, 0);
    write(path, *index, head.indexOffset, 0);
  }
  {
    const auto store = open();
    const FoundSegment found = store->find(large.key);
    ASSERT_TRUE(found) << storeReasonName(found.reason);
    EXPECT_EQ(found.segment->size(), kSize);
    EXPECT_EQ(found.segment->data()[0], 0);
    EXPECT_EQ(found.segment->data()[kSize - 1], 0);
    EXPECT_TRUE(equal(store->find(segmentKey(61)).segment->bytes(), behind));
    // After another segment is added, the first one is still complete.
    ASSERT_NE(publish(*store, segmentKey(62), payload(62, 5000)), nullptr);
    const std::vector<SegmentKey> keys = {segmentKey(61), segmentKey(62)};
    ASSERT_TRUE(store->publishPlan(planKey(10), payload(1, 10), keys));
    EXPECT_EQ(found.segment->data()[kSize - 1], 0);
  }
  const auto strict = open(StoreMode::kStrict);
  EXPECT_TRUE(equal(strict->find(segmentKey(61)).segment->bytes(), behind));
  EXPECT_TRUE(equal(strict->find(segmentKey(62)).segment->bytes(), payload(62, 5000)));
}

TEST_P(KeptStoreTest, ManyProcessesStartColdAtOnce) {
  const uint64_t numbers[] = {70, 71, 72, 73};
  for (const int processes : {2, 4, 16}) {
    SCOPED_TRACE(processes);
    removeFolder(folder_.path() / "store");
    fs::remove(folder_.path() / "bundle");
    const SharedWithChildren<std::atomic<int>> built;
    inProcesses(processes, [&] {
      const std::optional<int> count = start(*open(), 11, numbers);
      if (!count) return 1;
      built->fetch_add(*count);
      return 0;
    });
    EXPECT_EQ(built->load(), static_cast<int>(std::size(numbers)));
  }
}

std::string kindName(const testing::TestParamInfo<PlanCapacity>& info) {
  switch (info.param) {
    case PlanCapacity::kMany:
      return "Store";
    case PlanCapacity::kOne:
      return "Bundle";
    case PlanCapacity::kNone:
      break;
  }
  return "Anonymous";
}

INSTANTIATE_TEST_SUITE_P(Kinds, SegmentStoreTest,
                         testing::Values(PlanCapacity::kMany, PlanCapacity::kOne,
                                         PlanCapacity::kNone),
                         kindName);
INSTANTIATE_TEST_SUITE_P(Kinds, KeptStoreTest,
                         testing::Values(PlanCapacity::kMany, PlanCapacity::kOne), kindName);

}  // namespace
}  // namespace hearth::cache
