// SPDX-License-Identifier: Apache-2.0
#include "cache/bundle/bundle_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/descriptor.h"
#include "base/fault.h"
#include "base/fork_test_util.h"
#include "cache/identity/content_hash.h"
#include "cache/identity/content_memory.h"
#include "cache/open_store.h"
#include "cache/store/store_facts.h"
#include "cache/testing/bundle_test_util.h"
#include "cache/testing/faults.h"
#include "cache/testing/shared_with_children.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

using BundleStoreTest = BundleTest;

TEST_F(BundleStoreTest, FindsWhatWasPublishedInThisProcessAndTheNext) {
  {
    const auto store = open();
    EXPECT_EQ(store->findPlan(planKey(1)).error().reason, StoreReason::kAbsent);
    EXPECT_EQ(build(*store), 0);
    EXPECT_EQ(store->counters().segmentsWritten, std::size(kSizes));
    EXPECT_EQ(openSegmentStore(options()), store);
  }
  EXPECT_TRUE(fs::exists(path()));
  EXPECT_FALSE(fs::exists(building()));
  struct stat status;
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto store = open();
  const auto plan = store->findPlan(planKey(1));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(equal((*plan)->bytes(), payload(101, 3000)));
  EXPECT_TRUE(std::ranges::equal((*plan)->segments(), keys()));
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    const FoundSegment found = store->find(keys()[i]);
    ASSERT_TRUE(found);
    EXPECT_TRUE(equal(found.segment->bytes(), bytesOf(i)));
    const size_t alignment = kSizes[i] < (2u << 20) ? 4096 : 2u << 20;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(found.segment->data()) % alignment, 0u);
    EXPECT_EQ(store->find(keys()[i]).segment, found.segment);
    // One page after the payload is readable.
    (void)*static_cast<const volatile uint8_t*>(found.segment->data() + kSizes[i] + 4095);
  }
  EXPECT_EQ(store->find(segmentKey(99)).reason, StoreReason::kAbsent);
  store->settle();
  EXPECT_EQ(store->counters().segmentsCorrupt, 0u);
  // The holes take no room on the disk.
  uint64_t packed = 0;
  for (const size_t size : kSizes) packed += size;
  EXPECT_LE(static_cast<uint64_t>(status.st_blocks) * 512, packed + packed / 100 + (64u << 10));
}

// As a machine with pages of 4 KiB writes it; in cache_test_large_pages the payloads begin in the
// middle of pages.
TEST_F(BundleStoreTest, BundlesOfMachinesWithSmallPagesAreRead) {
  BundleContent content;
  std::vector<uint8_t> file(kBundleHeadSize);
  for (uint64_t number = 1; number <= 3; ++number) {
    const std::vector<uint8_t> bytes = payload(number, 5000 + number);
    content.segments.push_back({.key = segmentKey(number),
                                .offset = file.size(),
                                .payloadSize = bytes.size(),
                                .blocks = {base::Sha256::of(bytes)}});
    file.insert(file.end(), bytes.begin(), bytes.end());
    file.resize((file.size() + kBundleAlignment - 1) / kBundleAlignment * kBundleAlignment);
    content.plan.segments.push_back(segmentKey(number));
  }
  content.plan.key = planKey(1);
  BundleHead head{.writtenIn = currentBootId()};
  const auto index = makeBundleIndex(content, file.size(), head);
  ASSERT_TRUE(index) << index.error().message;
  file.resize(head.fileSize);
  std::ranges::copy(makeBundleHead(head), file.begin());
  std::ranges::copy(*index, file.begin() + static_cast<ptrdiff_t>(head.indexOffset));
  writeFile(path(), file);

  const auto store = open();
  ASSERT_TRUE(store->findPlan(planKey(1)));
  for (uint64_t number = 1; number <= 3; ++number) {
    const FoundSegment found = store->find(segmentKey(number));
    ASSERT_TRUE(found) << storeReasonName(found.reason);
    found.segment->prefault();
    EXPECT_TRUE(found.segment->isResident());
    EXPECT_TRUE(equal(found.segment->bytes(), payload(number, 5000 + number)));
    (void)*static_cast<const volatile uint8_t*>(found.segment->data() + 5000 + number + 63);
  }
  store->settle();
  EXPECT_EQ(store->counters().segmentsCorrupt, 0u);
}

TEST_F(BundleStoreTest, PublishedSegmentsLieOverTheSource) {
  const auto store = open();
  const size_t size = kSizes[3];
  auto memory = std::make_shared<memory::Mapping>(memory::Mapping::anonymous(size).value());
  std::ranges::copy(bytesOf(3), memory->data());
  std::atomic<bool> laidOver = false;
  store->publishAsync({.key = segmentKey(3),
                       .payload = {memory->data(), size},
                       .owner = memory,
                       .ticket = store->acquire(segmentKey(3)),
                       .done = [&](StoreResult<SegmentRef> result) {
                         laidOver = result && (*result)->mapOver(memory->data());
                       }});
  std::atomic<bool> planIsThere = false;
  store->afterPublishing([&] {
    planIsThere =
        store->publishPlan(planKey(1), payload(1, 9), std::vector{segmentKey(3)}).has_value();
  });
  store->flush();
  EXPECT_TRUE(laidOver);
  EXPECT_TRUE(planIsThere);
  EXPECT_TRUE(equal({memory->data(), size}, bytesOf(3)));
}

TEST_F(BundleStoreTest, AnotherPlanReplacesTheFileAndReadersKeepTheOldOne) {
  ASSERT_EQ(build(*open(), 1), 0);
  const auto store = open();
  const SegmentRef kept = store->find(keys()[3]).segment;
  const auto oldPlan = store->findPlan(planKey(1)).value();
  struct stat before;
  ASSERT_EQ(::stat(path().c_str(), &before), 0);
  // Another model shares one segment, which is copied and not built again.
  const auto other = store->findPlan(planKey(2));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().reason, StoreReason::kOtherPlan);
  EXPECT_NE(other.error().message.find(planKey(1).hex()), std::string::npos);
  ASSERT_TRUE(publish(*store, segmentKey(50), payload(50, 7777)));
  const std::vector<SegmentKey> segments = {segmentKey(50), keys()[2]};
  ASSERT_TRUE(store->publishPlan(planKey(2), payload(2, 20), segments,
                                 {.model = "other.tflite", .device = "hearth-cpu"}));
  EXPECT_EQ(store->counters().segmentsWritten, 1u);
  EXPECT_FALSE(store->findPlan(planKey(1)));
  EXPECT_EQ(store->findPlan(planKey(2)).value()->description().model, "other.tflite");
  EXPECT_TRUE(equal(kept->bytes(), bytesOf(3)));
  EXPECT_TRUE(equal(oldPlan->bytes(), payload(101, 3000)));
  struct stat after;
  ASSERT_EQ(::stat(path().c_str(), &after), 0);
  EXPECT_NE(after.st_ino, before.st_ino);
  EXPECT_TRUE(equal(open(strict())->find(keys()[2]).segment->bytes(), bytesOf(2)));
  EXPECT_TRUE(equal(open(strict())->find(segmentKey(50)).segment->bytes(), payload(50, 7777)));
  EXPECT_EQ(open(strict())->find(keys()[0]).reason, StoreReason::kAbsent);
}

TEST_F(BundleStoreTest, APlanWithoutItsSegmentsIsRefused) {
  const auto store = open();
  const auto refused = store->publishPlan(planKey(1), payload(1, 5), std::vector{segmentKey(9)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, StoreReason::kAbsent);
  EXPECT_FALSE(fs::exists(path()));
  EXPECT_EQ(build(*store), 0);
}

// Two starts write at the same time. The plan of the first one completes the file; the segments
// that the second one has written by then must still get into the second one's bundle.
TEST_F(BundleStoreTest, APlanKeepsSegmentsThatWereWrittenBeforeAnotherPlan) {
  const auto first = segmentKey(1);
  const auto early = segmentKey(2);
  const auto third = segmentKey(3);
  const auto late = segmentKey(4);
  const std::vector<uint8_t> bytes = payload(2, 70000);
  {
    const auto store = open();
    ASSERT_TRUE(publish(*store, first, payload(1, 5000)));
    ASSERT_TRUE(publish(*store, early, bytes));
    ASSERT_TRUE(store->publishPlan(planKey(1), payload(91, 300), std::vector{first}));
    EXPECT_EQ(open(strict())->find(early).reason, StoreReason::kAbsent);
    // Another bundle is published in between.
    ASSERT_TRUE(publish(*store, third, payload(3, 5000)));
    ASSERT_TRUE(store->publishPlan(planKey(1), payload(92, 300), std::vector{first, third}));
    ASSERT_TRUE(publish(*store, late, payload(4, 5000)));
    const auto plan =
        store->publishPlan(planKey(1), payload(93, 300), std::vector{first, early, third, late});
    ASSERT_TRUE(plan) << plan.error().message;
  }
  const auto store = open(strict());
  for (const SegmentKey& key : {first, early, third, late}) EXPECT_TRUE(store->find(key));
  EXPECT_TRUE(equal(store->find(early).segment->bytes(), bytes));
}

TEST_F(BundleStoreTest, ReadOnlyAndOffWriteNothing) {
  StoreOptions readOnly = options();
  readOnly.mode = StoreMode::kReadOnly;
  EXPECT_EQ(open(readOnly)->acquire(keys()[0]).role(), BuildTicket::Role::kAlone);
  EXPECT_EQ(publish(*open(readOnly), keys()[0], bytesOf(0)).error().reason, StoreReason::kReadOnly);
  EXPECT_EQ(open(readOnly)->writability().reason, StoreReason::kReadOnly);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
  ASSERT_EQ(build(*open()), 0);
  EXPECT_EQ(build(*open(readOnly)), 0);
  StoreOptions off = options();
  off.mode = StoreMode::kOff;
  EXPECT_EQ(openSegmentStore(off)->planCapacity(), PlanCapacity::kNone);
  EXPECT_EQ(openSegmentStore(off)->writability().reason, StoreReason::kOff);
}

TEST_F(BundleStoreTest, AMissingFolderIsAReason) {
  StoreOptions missing = options();
  missing.bundle = (folder_.path() / "none" / "x.bundle").string();
  EXPECT_EQ(openSegmentStore(missing)->writability().reason, StoreReason::kGone);
  for (const char* name : {"", "/", "..", "folder/"}) {
    missing.bundle = name;
    EXPECT_FALSE(BundleStore::open(missing)) << name;
  }
}

TEST_F(BundleStoreTest, ContentHashesAreRememberedInTheFile) {
  TempFolder disk;
  const fs::path model = disk.path() / "model";
  writeFile(model, payload(7, 300'000));
  const timespec old[2] = {{.tv_sec = 1'600'000'000}, {.tv_sec = 1'600'000'000}};
  ::utimensat(AT_FDCWD, model.c_str(), old, 0);
  const auto file = base::Descriptor::open(model, O_RDONLY);
  if (FileIdentity::of(file->get())->proof != ChangeProof::kStamps)
    GTEST_SKIP() << "The folder for temporary files is memory.";
  // The time of the last change cannot be set, only waited for.
  ::usleep(2'100'000);
  const auto first = open()->contentHash(file->get(), 0, 300'000).value();
  {
    const auto store = open();
    EXPECT_EQ(store->contentHash(file->get(), 0, 300'000).value(), first);
    EXPECT_EQ(build(*store), 0);
    EXPECT_EQ(store->counters().bytesHashed, 300'000u);
  }
  const fs::file_time_type written = fs::last_write_time(path());
  {
    const auto store = open();
    EXPECT_EQ(store->contentHash(file->get(), 0, 300'000).value(), first);
    EXPECT_EQ(store->counters().bytesHashed, 0u);
    // The digest of another range is added to the notes of the existing bundle.
    (void)store->contentHash(file->get(), 5, 100);
    EXPECT_EQ(store->counters().bytesHashed, 100u);
  }
  const auto store = open();
  (void)store->contentHash(file->get(), 5, 100);
  EXPECT_EQ(store->counters().bytesHashed, 0u);
  EXPECT_EQ(fs::last_write_time(path()), written);
  writeFile(model, payload(8, 300'000));
  EXPECT_NE(store->contentHash(file->get(), 0, 300'000).value(), first);
  EXPECT_FALSE(store->contentTags(ContentSource::of(file->get(), 0, 300'000), 1).value())
      << "A bundle is passed on, so it has no key.";
}

TEST_F(BundleStoreTest, FactsAreKeptBesideThePlan) {
  const std::vector<Fact> facts = {{"small", payload(1, 32)}, {"large", payload(2, 700)}};
  const auto recalled = [](SegmentStore& store, const std::string& key) {
    return store.recall(key).value_or(std::vector<uint8_t>());
  };
  {
    // These are remembered before the file exists, and written with the plan.
    const auto store = open();
    store->remember(facts);
    store->flush();
    EXPECT_FALSE(fs::exists(path()));
    EXPECT_EQ(recalled(*store, "large"), payload(2, 700));
    ASSERT_EQ(build(*store), 0);
  }
  struct stat first;
  ASSERT_EQ(::stat(path().c_str(), &first), 0);
  {
    const auto store = open();
    for (const Fact& fact : facts) EXPECT_EQ(recalled(*store, fact.key), fact.value);
    // A fact of 32 bytes becomes a note and needs no new file.
    const Fact other{"other", payload(3, 32)};
    store->remember({&other, 1});
    store->flush();
    struct stat status;
    ASSERT_EQ(::stat(path().c_str(), &status), 0);
    EXPECT_EQ(status.st_ino, first.st_ino);
    // Larger facts need one, with a copy of everything else; mappings stay.
    const SegmentRef mapped = store->find(keys()[3]).segment;
    const Fact more[] = {{"large", payload(4, 32)}, {"more", payload(5, 33)}};
    store->remember(more);
    store->flush();
    ASSERT_EQ(::stat(path().c_str(), &status), 0);
    EXPECT_NE(status.st_ino, first.st_ino);
    EXPECT_FALSE(fs::exists(building()));
    EXPECT_TRUE(equal(mapped->bytes(), bytesOf(3)));
  }
  const auto expectAll = [&](const StoreOptions& how) {
    const auto store = open(how);
    EXPECT_EQ(recalled(*store, "small"), payload(1, 32));
    EXPECT_EQ(recalled(*store, "large"), payload(4, 32));
    EXPECT_EQ(recalled(*store, "other"), payload(3, 32));
    EXPECT_EQ(recalled(*store, "more"), payload(5, 33));
    ASSERT_EQ(build(*store), 0);
    EXPECT_EQ(store->counters().segmentsWritten, 0u);
  };
  expectAll(strict());
  StoreOptions readOnly = options();
  readOnly.mode = StoreMode::kReadOnly;
  open(readOnly)->remember(facts);
  expectAll(readOnly);
  expectAll(options());
  // Publishing the same plan keeps the facts; a plan of another key does not.
  ASSERT_TRUE(open()->publishPlan(planKey(1), payload(101, 3000), keys()));
  expectAll(options());
  const auto store = open();
  ASSERT_TRUE(store->publishPlan(planKey(2), payload(2, 20), keys()));
  EXPECT_EQ(recalled(*store, "large"), std::vector<uint8_t>());
  EXPECT_EQ(recalled(*store, "small"), payload(1, 32));
}

TEST_F(BundleStoreTest, FactsStayWithinTheirLimits) {
  ASSERT_EQ(build(*open()), 0);
  const auto store = open();
  const Fact refused[] = {{"", payload(1, 40)},
                          {std::string(kFactLimits.maxKeyBytes + 1, 'k'), payload(1, 40)},
                          {"none", {}},
                          {"long", payload(1, kFactLimits.maxValueBytes + 1)}};
  store->remember(refused);
  for (const Fact& fact : refused) EXPECT_FALSE(store->recall(fact.key)) << fact.key;
  // The oldest facts are evicted.
  for (uint64_t i = 0; i < 10; ++i) {
    const Fact fact{std::to_string(i), payload(i, kFactLimits.maxValueBytes)};
    store->remember({&fact, 1});
    store->flush();
  }
  const auto next = open(strict());
  EXPECT_FALSE(next->recall("0"));
  EXPECT_EQ(next->recall("9"), payload(9, kFactLimits.maxValueBytes));
  EXPECT_EQ(build(*next), 0);
}

TEST_F(BundleStoreTest, ACheckIsDoneOnceForEachBootAndFile) {
  const auto [first, second] = optionsOfTwoBoots();
  ASSERT_EQ(build(*open(first)), 0);
  const auto checksOf = [](const StoreOptions& storeOptions) {
    const auto store = open(storeOptions);
    EXPECT_TRUE(store->find(keys()[0]));
    store->settle();
    return store->counters().segmentsChecked;
  };
  EXPECT_EQ(checksOf(first), 0u);  // a process of this boot wrote every byte
  EXPECT_EQ(checksOf(second), std::size(kSizes));
  EXPECT_EQ(checksOf(second), 0u);
  fs::last_write_time(path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(checksOf(second), std::size(kSizes));
}

TEST_F(BundleStoreTest, LostWritesShowAfterTheNextBoot) {
  const auto [first, second] = optionsOfTwoBoots();
  ASSERT_EQ(build(*open(first)), 0);
  std::vector<uint8_t> bytes = readFile(path());
  // The third payload follows the head and two payloads.
  uint64_t third = 0;
  for (size_t i = 0, end = 0; i < 3; end = third + kSizes[i++])
    third = bundlePayloadOffset(end, kSizes[i]);
  std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(third) + 20'000, 8192, 0);
  writeFile(path(), bytes);
  const auto store = open(second);
  EXPECT_EQ(store->find(keys()[2]).reason, StoreReason::kCorrupt);
  EXPECT_TRUE(equal(store->find(keys()[1]).segment->bytes(), bytesOf(1)));
  // Undamaged parts of the bundle are copied.
  EXPECT_EQ(build(*store), 0);
  EXPECT_EQ(store->counters().segmentsWritten, 1u);
  EXPECT_EQ(build(*open(strict())), 0);
  EXPECT_EQ(open(strict())->counters().segmentsWritten, 0u);
}

TEST_F(BundleStoreTest, ADeletedBundleIsBuiltAnew) {
  ASSERT_EQ(build(*open()), 0);
  const auto store = open();
  const SegmentRef kept = store->find(keys()[1]).segment;
  fs::remove(path());
  EXPECT_EQ(store->findPlan(planKey(1)).error().reason, StoreReason::kAbsent);
  EXPECT_TRUE(equal(kept->bytes(), bytesOf(1)));
  removeFolder(folder_.path());
  fs::create_directory(folder_.path());
  EXPECT_NE(build(*store), 0);
  EXPECT_EQ(build(*open(strict())), 0);
}

#ifdef HEARTH_TEST_HOOKS

TEST_F(BundleStoreTest, EveryFailureToWriteHasAReasonAndLeavesNothing) {
  const FaultsByReason faults = {
      {StoreReason::kNoSpace, {"pwrite:ENOSPC", "fallocate:EDQUOT", "rename:ENOSPC"}},
      {StoreReason::kIoError, {"pwrite:EIO:3", "ftruncate:EIO"}},
      {StoreReason::kReadOnly, {"rename:EROFS"}},
  };
  forEachFault(faults, [&](const char* fault, StoreReason reason) {
    {
      const auto store = open();
      EXPECT_NE(underFault(fault, [&] { return build(*store); }), 0);
      EXPECT_EQ(store->writability().reason, reason);
    }
    EXPECT_TRUE(fs::is_empty(folder_.path()));
  });
  // A failure to add facts has no other effect.
  ASSERT_EQ(build(*open()), 0);
  const Fact fact{"a fact", payload(1, 100)};
  for (const char* fault : {"pwrite:ENOSPC", "pwrite:EIO:5", "rename:EROFS", "pread:EIO:1"}) {
    SCOPED_TRACE(fault);
    const auto store = open();
    ASSERT_TRUE(base::sys::injectText(fault));
    store->remember({&fact, 1});
    store->flush();
    base::sys::clearFaults();
    EXPECT_FALSE(fs::exists(building()));
    EXPECT_EQ(store->recall(fact.key), fact.value);
    EXPECT_FALSE(open(strict())->recall(fact.key));
    EXPECT_EQ(build(*open(strict())), 0);
    EXPECT_EQ(open(strict())->counters().segmentsWritten, 0u);
  }
  fs::remove(path());
  ASSERT_TRUE(base::sys::injectText("open:EACCES:3:*"));
  EXPECT_EQ(open()->acquire(keys()[0]).role(), BuildTicket::Role::kAlone);
  base::sys::clearFaults();
  ASSERT_TRUE(base::sys::injectText("pwrite:short:1:*,pread:short:1:*,rename:EINTR,fsync:EINTR"));
  EXPECT_EQ(build(*open()), 0);
  EXPECT_EQ(build(*open(strict())), 0);
  base::sys::clearFaults();
}

TEST_F(BundleStoreTest, AFileThatCannotBeSyncedIsDropped) {
  const auto store = open();
  ASSERT_EQ(build(*store), 0);
  const SegmentRef segment = store->find(keys()[0]).segment;
  ASSERT_TRUE(base::sys::injectText("fsync:EIO"));
  store->settle();
  base::sys::clearFaults();
  EXPECT_TRUE(segment->isCorrupt());
  EXPECT_FALSE(fs::exists(path()));
  EXPECT_EQ(store->find(keys()[0]).reason, StoreReason::kCorrupt);
}

#endif  // HEARTH_TEST_HOOKS

class BundleProcessTest : public BundleTest {
 protected:
  struct Shared {
    std::atomic<int> ready;
    std::atomic<int> builders;
  };

  // A process that begins to build and never ends; returns when it has begun.
  pid_t startBuilder(const StoreOptions& options, const SegmentKey& key) const {
    const pid_t builder = startChild([&] {
      const auto store = BundleStore::open(options);
      const BuildTicket ticket = (*store)->acquire(key);
      if (ticket.role() == BuildTicket::Role::kBuild) shared_->ready = 1;
      ::pause();
      return 0;
    });
    waitUntil(shared_->ready, 1);
    return builder;
  }

  SharedWithChildren<Shared> shared_;
};

TEST_F(BundleProcessTest, SixteenProcessesStartColdWithOneBuilder) {
  inProcesses(16, [&] {
    const auto store = BundleStore::open(options());
    if (!store) return 9;
    const int result = build(**store);
    if ((*store)->counters().segmentsWritten > 0) shared_->builders.fetch_add(1);
    return result;
  });
  EXPECT_EQ(shared_->builders.load(), 1);
  EXPECT_FALSE(fs::exists(building()));
  EXPECT_EQ(build(*open(strict())), 0);
  EXPECT_EQ(open(strict())->counters().segmentsWritten, 0u);
}

TEST_F(BundleProcessTest, ThreadsShareOneBuilder) {
  const auto store = open();
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (size_t segment = 0; segment < std::size(kSizes); ++segment) {
        BuildTicket ticket = store->acquire(keys()[segment], std::chrono::seconds(120));
        if (ticket.role() == BuildTicket::Role::kBuild) {
          const auto bytes = std::make_shared<const std::vector<uint8_t>>(bytesOf(segment));
          store->publishAsync({.key = keys()[segment],
                               .payload = *bytes,
                               .owner = bytes,
                               .ticket = std::move(ticket)});
        } else if (ticket.role() != BuildTicket::Role::kFound) {
          ++failures;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  store->flush();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(store->counters().segmentsWritten, std::size(kSizes));
  EXPECT_EQ(build(*store), 0);
}

TEST_F(BundleProcessTest, AnotherProcessTakesOverFromABuilderThatDies) {
  const pid_t builder = startBuilder(options(), keys()[0]);
  // A process that has waited too long builds for itself, and does not wait for the same writer
  // again.
  const auto store = open();
  EXPECT_EQ(store->acquire(keys()[0], std::chrono::milliseconds(30)).role(),
            BuildTicket::Role::kAlone);
  EXPECT_EQ(store->acquire(keys()[1], std::chrono::hours(1)).role(), BuildTicket::Role::kAlone);
  EXPECT_EQ(publish(*store, keys()[0], bytesOf(0)).error().reason, StoreReason::kBusy);
  ::kill(builder, SIGKILL);
  waitForChild(builder);
  EXPECT_EQ(build(*store), 0);
  EXPECT_FALSE(fs::exists(building()));
}

TEST_F(BundleProcessTest, FactsDoNotWaitForBuildersAndAreWrittenWithTheNextPlan) {
  ASSERT_EQ(build(*open()), 0);
  const auto store = open();
  const auto remember = [&](const std::string& key) {
    const Fact fact{key, payload(1, 100)};
    store->remember({&fact, 1});
    store->flush();
  };
  const auto isKept = [&](const std::string& key) {
    return open(strict())->recall(key).has_value();
  };
  // Another process is building.
  const pid_t builder = startBuilder(strict(), segmentKey(500));
  remember("busy");
  EXPECT_FALSE(isKept("busy"));
  ::kill(builder, SIGKILL);
  waitForChild(builder);
  // This process is building.
  BuildTicket ticket = store->acquire(segmentKey(500));
  ASSERT_EQ(ticket.role(), BuildTicket::Role::kBuild);
  remember("building");
  EXPECT_FALSE(isKept("building"));
  ASSERT_TRUE(publish(*store, segmentKey(500), payload(500, 10)));
  remember("building more");
  EXPECT_FALSE(isKept("building more"));
  ticket.release();
  std::vector<SegmentKey> segments = keys();
  segments.push_back(segmentKey(500));
  ASSERT_TRUE(store->publishPlan(planKey(1), payload(101, 3000), segments));
  for (const char* key : {"busy", "building", "building more"}) EXPECT_TRUE(isKept(key)) << key;
  remember("alone");
  EXPECT_TRUE(isKept("alone"));
  EXPECT_TRUE(open(strict())->find(segmentKey(500)));
}

TEST_F(BundleProcessTest, AnUnusedTicketLetsOthersBuild) {
  const auto store = open();
  BuildTicket first = store->acquire(segmentKey(500));
  BuildTicket second = store->acquire(segmentKey(501));
  ASSERT_EQ(first.role(), BuildTicket::Role::kBuild);
  ASSERT_EQ(second.role(), BuildTicket::Role::kBuild);
  const auto tryElsewhere = [&] {
    return waitForChild(startChild([&] {
      const auto other = BundleStore::open(strict());
      return (*other)->acquire(segmentKey(502), std::chrono::milliseconds(1)).role() ==
                     BuildTicket::Role::kBuild
                 ? 0
                 : 1;
    }));
  };
  EXPECT_FALSE(succeeded(tryElsewhere()));
  first.release();
  EXPECT_FALSE(succeeded(tryElsewhere()));
  second.release();
  EXPECT_FALSE(fs::exists(building()));
  EXPECT_TRUE(succeeded(tryElsewhere()));
  EXPECT_EQ(build(*store), 0);
}

TEST_F(BundleStoreTest, ASegmentWithoutAKeyIsNamedByItsContent) {
  const auto store = open();
  SegmentRef segment;
  const std::vector<uint8_t> bytes = payload(77, 5000);
  store->publishAsync({.payload = bytes, .done = [&](auto result) {
                         segment = result.value_or(nullptr);
                       }});
  store->flush();
  ASSERT_NE(segment, nullptr);
  EXPECT_EQ(segment->key(), contentSegmentKey(bytes));
  // A segment that is still mapped but not stored cannot be named by a plan; it is written again.
  const std::vector<SegmentKey> keys = {segment->key()};
  ASSERT_TRUE(store->publishPlan(planKey(1), {}, keys));
  fs::remove(path());
  EXPECT_FALSE(store->findPlan(planKey(1)));
  ASSERT_TRUE(publish(*store, segment->key(), bytes));
  EXPECT_TRUE(store->publishPlan(planKey(1), {}, keys));
}

TEST_F(BundleStoreTest, ClosingOnItsOwnThreadFinishesWhatIsQueued) {
  auto store = open();
  std::atomic<int> done = 0;
  std::atomic<bool> go = false;
  const std::vector<uint8_t> bytes = payload(1, 10);
  SegmentStore* const raw = store.get();
  raw->afterPublishing([&] {
    while (!go.load()) ::usleep(100);
    store.reset();
    ++done;
  });
  for (uint64_t i = 0; i < 5; ++i)
    raw->publishAsync({.key = segmentKey(i), .payload = bytes, .done = [&](const auto&) {
                         ++done;
                       }});
  go = true;
  while (done.load() < 6) ::usleep(100);
  EXPECT_EQ(store, nullptr);
}

TEST_F(BundleProcessTest, AForkedChildUsesTheBundleAndLeavesTheParentsWork) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  const auto store = open();
  ASSERT_TRUE(publish(*store, keys()[0], bytesOf(0)));
  const SegmentRef mapped = store->find(keys()[0]).segment;
  const pid_t child = startChild([&] {
    if (!equal(mapped->bytes(), bytesOf(0))) return 1;
    // The parent is still building.
    if (store->acquire(keys()[1], std::chrono::milliseconds(20)).role() !=
        BuildTicket::Role::kAlone)
      return 2;
    return 0;
  });
  EXPECT_EQ(waitForChild(child), 0);
  EXPECT_EQ(build(*store), 0);
  EXPECT_EQ(waitForChild(startChild([&] {
              const int result = build(*store);
              store->settle();
              return result;
            })),
            0);
}

}  // namespace
}  // namespace hearth::cache
