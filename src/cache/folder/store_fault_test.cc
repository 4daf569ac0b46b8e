// SPDX-License-Identifier: Apache-2.0
// System calls fail: in the worst case there is no store.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "base/descriptor.h"
#include "base/fault.h"
#include "cache/identity/content_hash.h"
#include "cache/testing/faults.h"
#include "cache/testing/memory_store_test.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

class StoreFaultTest : public MemoryStoreTest {
 protected:
  void SetUp() override { base::sys::clearFaults(); }
  void TearDown() override { base::sys::clearFaults(); }
};

#ifdef HEARTH_TEST_HOOKS

TEST_F(StoreFaultTest, EveryFailureToWriteHasAReasonAndLeavesNothing) {
  const FaultsByReason faults = {
      {StoreReason::kNoSpace,
       {"pwrite:ENOSPC", "pwrite:EDQUOT", "pwrite:ENOSPC:2", "fallocate:ENOSPC", "rename:ENOSPC",
        "mkdir:EDQUOT"}},
      {StoreReason::kIoError, {"pwrite:EIO", "open:EMFILE:1:*", "rename:EIO"}},
      {StoreReason::kReadOnly, {"open:EROFS:4"}},
  };
  const auto store = open();
  uint64_t number = 0;
  forEachFault(faults, [&](const char* fault, StoreReason reason) {
    const SegmentKey key = segmentKey(++number);
    const auto failed =
        underFault(fault, [&] { return store->publish(key, payload(1, 2u << 20)); });
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().reason, reason) << failed.error().message;
    EXPECT_FALSE(failed.error().message.empty());
    EXPECT_EQ(store->find(key).reason, StoreReason::kAbsent);
    EXPECT_TRUE(fs::is_empty(root() / "tmp"));
    EXPECT_TRUE(store->publish(key, payload(1, 2u << 20)));
  });
}

TEST_F(StoreFaultTest, SegmentsThatAreCopiedFirstFailWithTheSameReasons) {
  const FaultsByReason faults = {
      {StoreReason::kNoSpace,
       {"pwrite:ENOSPC", "pwrite:ENOSPC:2", "pwrite:ENOSPC:4", "fallocate:ENOSPC", "mkdir:EDQUOT"}},
      {StoreReason::kIoError, {"pwrite:EIO", "pread:EIO", "rename:EIO"}},
      {StoreReason::kReadOnly, {"open:EROFS"}},
  };
  const auto store = open();
  // Three writes for the payload, one for the tail.
  const std::vector<uint8_t> bytes = payload(1, 20u << 20);
  forEachFault(faults, [&](const char* fault, StoreReason reason) {
    const auto result = underFault(fault, [&] {
      std::optional<StoreResult<SegmentRef>> published;
      store->publishAsync({.payload = bytes,
                           .copied = [](const memory::Mapping&) {},
                           .done =
                               [&](StoreResult<SegmentRef> segment) {
                                 published = segment;
                               }});
      store->flush();
      return published;
    });
    ASSERT_TRUE(result && !*result);
    EXPECT_EQ(result->error().reason, reason) << result->error().message;
    EXPECT_TRUE(fs::is_empty(root() / "tmp"));
    EXPECT_FALSE(store->find(contentSegmentKey(bytes)));
  });
}

TEST_F(StoreFaultTest, SegmentsThatAreWrittenInPartsFailAndLeaveNothing) {
  const auto store = open();
  const std::vector<uint8_t> bytes = payload(1, 4u << 20);
  // How far writing comes.
  const auto write = [&](const char* fault) {
    return underFault(fault, [&] {
      std::unique_ptr<SegmentWriter> writer = store->beginWriting(bytes.size());
      if (writer == nullptr) return 0;
      if (!writer->append(std::span(bytes).first(2u << 20))) return 1;
      if (!writer->append(std::span(bytes).subspan(2u << 20))) return 2;
      if (!writer->map()) return 3;
      bool isPublished = false;
      store->publishAsync({.written = std::move(writer), .done = [&](const auto& segment) {
                             isPublished = segment.has_value();
                           }});
      store->flush();
      return isPublished ? 5 : 4;
    });
  };
  const std::pair<const char*, int> ends[] = {
      {"fallocate:ENOSPC", 0}, {"open:EROFS", 0}, {"pwrite:ENOSPC", 1},  {"pwrite:EIO:2", 2},
      {"pread:EIO", 4},        {"rename:EIO", 4}, {"pwrite:ENOSPC:3", 4}};
  for (const auto& [fault, end] : ends) {
    SCOPED_TRACE(fault);
    EXPECT_EQ(write(fault), end);
    EXPECT_TRUE(fs::is_empty(root() / "tmp"));
    EXPECT_FALSE(store->find(contentSegmentKey(bytes)));
  }
  EXPECT_EQ(write("pwrite:EINTR:1:2,pwrite:short:4:2"), 5);
  EXPECT_TRUE(store->find(contentSegmentKey(bytes)));
}

TEST_F(StoreFaultTest, InterruptedAndShortCallsAreNoFailures) {
  for (const char* fault : {"open:EINTR:1:3,pwrite:EINTR:1:2,rename:EINTR,mkdir:EINTR,fsync:EINTR",
                            "pwrite:short:1:*", "pread:short:1:*", "pread:EINTR:1:5"}) {
    SCOPED_TRACE(fault);
    removeFolder(root());
    ASSERT_TRUE(base::sys::injectText(fault));
    {
      const auto store = open();
      ASSERT_NE(store, nullptr);
      EXPECT_TRUE(store->publish(segmentKey(1), payload(1, 100'000)));
      EXPECT_TRUE(store->publishPlan(planKey(1), payload(2, 100), {}));
      store->settle();
    }
    StoreOptions strict = options();
    strict.mode = StoreMode::kStrict;
    const auto store = open(strict);
    const FoundSegment found = store->find(segmentKey(1));
    ASSERT_TRUE(found);
    EXPECT_TRUE(equal(found.segment->bytes(), payload(1, 100'000)));
    EXPECT_TRUE(store->findPlan(planKey(1)));
    base::sys::clearFaults();
  }
}

TEST_F(StoreFaultTest, AFailingReadIsNoCorruption) {
  ASSERT_TRUE(open()->publish(segmentKey(1), payload(1, 5000)));
  open()->settle();
  ASSERT_TRUE(base::sys::injectText("pread:EIO"));
  EXPECT_EQ(open()->find(segmentKey(1)).reason, StoreReason::kIoError);
  EXPECT_TRUE(open()->find(segmentKey(1)));
}

// The names are final for all segments, for none, or for some.
TEST_F(StoreFaultTest, SegmentsAreMostlyFoundUnderTheFirstName) {
  constexpr uint64_t kSegments = 20;
  for (uint64_t i = 0; i < kSegments; ++i)
    ASSERT_TRUE(open()->publish(segmentKey(i), payload(i, 100)));
  const auto rename = [&](uint64_t number, bool durable) {
    fs::rename(segmentPath(segmentKey(number), !durable), segmentPath(segmentKey(number), durable));
  };
  const auto opens = [&] {
    const auto store = open();
    base::sys::clearFaults();
    for (uint64_t i = 0; i < kSegments; ++i) EXPECT_TRUE(store->find(segmentKey(i))) << i;
    return base::sys::passes(base::sys::Call::kOpen);
  };
  EXPECT_LE(opens(), kSegments + 1);
  for (uint64_t i = 0; i < kSegments; i += 2) rename(i, true);
  EXPECT_LE(opens(), 2 * kSegments);
  for (uint64_t i = 1; i < kSegments; i += 2) rename(i, true);
  EXPECT_EQ(opens(), kSegments);
}

TEST_F(StoreFaultTest, SegmentsThatCannotBeSyncedAreDropped) {
  const auto store = open();
  ASSERT_TRUE(base::sys::injectText("fsync:EIO"));
  const auto segment = store->publish(segmentKey(1), payload(1, 5000));
  ASSERT_TRUE(segment);
  store->settle();
  EXPECT_TRUE((*segment)->isCorrupt());
  EXPECT_EQ(store->counters().segmentsCorrupt, 1u);
  EXPECT_FALSE(store->find(segmentKey(1)));
  EXPECT_TRUE(store->publish(segmentKey(1), payload(1, 5000)));
}

TEST_F(StoreFaultTest, AStoreThatCannotBeMadeGivesAReason) {
  ASSERT_TRUE(base::sys::injectText("mkdir:EACCES"));
  EXPECT_EQ(WeightStore::open(options()).error().reason, StoreReason::kReadOnly);
  ASSERT_TRUE(base::sys::injectText("mkdir:ENOSPC"));
  EXPECT_EQ(WeightStore::open(options()).error().reason, StoreReason::kNoSpace);
  ASSERT_TRUE(base::sys::injectText("open:EIO"));
  EXPECT_EQ(WeightStore::open(options()).error().reason, StoreReason::kIoError);
}

#endif  // HEARTH_TEST_HOOKS

TEST_F(StoreFaultTest, LostWritesShowAfterTheNextBoot) {
  StoreOptions first = options();
  first.boot = parseBootId("01234567-89ab-cdef-0123-456789abcdef");
  StoreOptions second = options();
  second.boot = parseBootId("fedcba98-7654-3210-fedc-ba9876543210");
  // Each store is closed at once, so neither segment is synced.
  ASSERT_TRUE(open(first)->publish(segmentKey(1), payload(1, 50'000)));
  ASSERT_TRUE(open(first)->publish(segmentKey(2), payload(2, 50'000)));
  const fs::path lost = segmentPath(segmentKey(1), false);
  ASSERT_TRUE(fs::exists(lost));
  std::vector<uint8_t> bytes = readFile(lost);
  std::fill_n(bytes.begin() + 20'000, 8192, 0);
  writeFile(lost, bytes);
  const auto store = open(second);
  EXPECT_EQ(store->find(segmentKey(1)).reason, StoreReason::kCorrupt);
  EXPECT_FALSE(fs::exists(lost));
  const FoundSegment found = store->find(segmentKey(2));
  ASSERT_TRUE(found);
  EXPECT_TRUE(equal(found.segment->bytes(), payload(2, 50'000)));
  store->settle();
  EXPECT_TRUE(fs::exists(segmentPath(segmentKey(2), true)));
}

TEST_F(StoreFaultTest, ACheckIsDoneOnceForEachBootAndFile) {
  StoreOptions first = options();
  first.boot = parseBootId("01234567-89ab-cdef-0123-456789abcdef");
  ASSERT_TRUE(open(first)->publish(segmentKey(1), payload(1, 50'000)));
  const auto checksOf = [](const StoreOptions& storeOptions) {
    const auto store = open(storeOptions);
    EXPECT_TRUE(store->find(segmentKey(1)));
    store->settle();
    return store->counters().segmentsChecked;
  };
  EXPECT_EQ(checksOf(first), 1u);
  EXPECT_EQ(checksOf(first), 0u);
  StoreOptions second = options();
  second.boot = parseBootId("fedcba98-7654-3210-fedc-ba9876543210");
  EXPECT_EQ(checksOf(second), 1u);
  EXPECT_EQ(checksOf(second), 0u);
  fs::permissions(segmentPath(segmentKey(1)), fs::perms(0400));
  EXPECT_EQ(checksOf(second), 1u);
  StoreOptions unknown = options();
  unknown.boot = BootId{};
  EXPECT_EQ(checksOf(unknown), 1u);
  EXPECT_EQ(checksOf(unknown), 1u);
}

TEST_F(StoreFaultTest, ASmallDiskFillsUp) {
  const fs::path mountPoint = folder_.path() / "small";
  fs::create_directory(mountPoint);
  const int status = waitForChild(startChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", mountPoint.c_str(), "tmpfs", 0, "size=3m,mode=700") != 0)
      return 77;
    StoreOptions small = options();
    small.path = (mountPoint / "store").string();
    const auto store = WeightStore::open(small);
    if (!store) return 1;
    if (!(*store)->publish(segmentKey(1), payload(1, 1u << 20))) return 2;
    const auto full = (*store)->publish(segmentKey(2), payload(2, 4u << 20));
    if (full || full.error().reason != StoreReason::kNoSpace) return 3;
    for (uint64_t i = 3; i < 400; ++i) {
      const auto published = (*store)->publish(segmentKey(i), payload(i, 9000));
      if (!published && published.error().reason != StoreReason::kNoSpace) return 4;
    }
    const auto plan = (*store)->publishPlan(planKey(1), payload(1, 100'000), {});
    if (plan || plan.error().reason != StoreReason::kNoSpace) return 5;
    const FoundSegment found = (*store)->find(segmentKey(1));
    if (!found || !equal(found.segment->bytes(), payload(1, 1u << 20))) return 6;
    // The new store has no room for its folders, or works without some file.
    small.path = (mountPoint / "other").string();
    (void)WeightStore::open(small);
    return 0;
  }));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "This process may not mount a file system.";
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

TEST_F(StoreFaultTest, AnotherUserReadsWhatRootOwnsAndWritesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "Only root may become another user.";
  ASSERT_TRUE(open()->publish(segmentKey(1), payload(1, 5000)));
  ASSERT_TRUE(open()->publishPlan(planKey(1), payload(2, 50), {}));
  open()->settle();
  const auto asNobody = [&] {
    return waitForChild(startChild([&] {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
      const auto store = WeightStore::open(options());
      if (!store) return store.error().reason == StoreReason::kReadOnly ? 50 : 2;
      if ((*store)->writability().reason != StoreReason::kReadOnly) return 3;
      if (!(*store)->find(segmentKey(1)) || !(*store)->findPlan(planKey(1))) return 4;
      if ((*store)->publish(segmentKey(2), payload(2, 10)).error().reason != StoreReason::kReadOnly)
        return 5;
      (*store)->settle();
      return 0;
    }));
  };
  fs::permissions(folder_.path(), fs::perms(0755));
  EXPECT_EQ(WEXITSTATUS(asNobody()), 50);
  for (const auto& entry : fs::recursive_directory_iterator(root()))
    fs::permissions(entry.path(), fs::perms(entry.is_directory() ? 0755 : 0644));
  fs::permissions(root(), fs::perms(0755));
  EXPECT_EQ(WEXITSTATUS(asNobody()), 0);
}

}  // namespace
}  // namespace hearth::cache
