// SPDX-License-Identifier: Apache-2.0
// A system call fails, or the process dies, while a blob cache is saved: the file is then either
// the old or the new one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/crash_point.h"
#include "base/fault.h"
#include "cache/testing/blob_cache_test_util.h"
#include "cache/testing/crash_points.h"
#include "cache/testing/faults.h"

#ifdef HEARTH_TEST_HOOKS

namespace hearth::cache {
namespace {

class BlobCacheFaultTest : public BlobCacheTest {
 protected:
  void SetUp() override { base::sys::clearFaults(); }
  void TearDown() override { base::sys::clearFaults(); }
};

TEST_F(BlobCacheFaultTest, EveryFailureToSaveHasAReasonAndKeepsTheOldFile) {
  const FaultsByReason faults = {
      {StoreReason::kNoSpace, {"pwrite:ENOSPC", "pwrite:EDQUOT", "fsync:ENOSPC", "rename:ENOSPC"}},
      {StoreReason::kIoError,
       {"pwrite:EIO", "fsync:EIO", "rename:EIO", "pread:EIO", "open:EMFILE"}},
      {StoreReason::kReadOnly, {"open:EROFS:2"}},
  };
  const auto first = open();
  first->set(keyOf(1), valueOf(1));
  ASSERT_TRUE(first->save());
  uint64_t number = 1;
  forEachFault(faults, [&](const char* fault, StoreReason reason) {
    const uint64_t saved = number++;
    const auto cache = open();
    cache->set(keyOf(number), valueOf(number));
    ASSERT_TRUE(cache->save());
    cache->set(keyOf(number + 100), valueOf(number + 100));
    const StoreStatus failed = underFault(fault, [&] { return cache->save(); });
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().reason, reason) << failed.error().message;
    EXPECT_FALSE(failed.error().message.empty());
    EXPECT_TRUE(has(*open(), saved));
    EXPECT_TRUE(has(*open(), number));
    EXPECT_FALSE(open()->get(keyOf(number + 100)));
    EXPECT_EQ(leftovers(), 0u);
    // Nothing is lost: the next call saves it.
    EXPECT_TRUE(has(*cache, number + 100));
    ASSERT_TRUE(cache->save());
    EXPECT_TRUE(has(*open(), number + 100));
  });
}

TEST_F(BlobCacheFaultTest, AFileThatCannotBeReadOnceIsNoEmptyCache) {
  const auto cache = open();
  cache->set(keyOf(1), valueOf(1));
  ASSERT_TRUE(cache->save());
  for (const char* fault : {"pread:EIO", "open:EMFILE"}) {
    const auto reader = open();
    ASSERT_TRUE(base::sys::injectText(fault));
    EXPECT_FALSE(reader->get(keyOf(1)));
    base::sys::clearFaults();
    EXPECT_TRUE(has(*reader, 1));
    ASSERT_TRUE(base::sys::injectText(fault));
    EXPECT_EQ(reader->verify().error().reason, StoreReason::kIoError);
    base::sys::clearFaults();
    EXPECT_EQ(reader->verify(), 1u);
  }
}

TEST_F(BlobCacheFaultTest, InterruptedAndShortCallsAreNoFailures) {
  for (const char* fault : {"open:EINTR:1:3,pwrite:EINTR:1:2,rename:EINTR,fsync:EINTR",
                            "pwrite:short:1:*", "pread:short:1:*", "pread:EINTR:1:5"}) {
    SCOPED_TRACE(fault);
    ASSERT_TRUE(base::sys::injectText(fault));
    const auto cache = open();
    for (uint64_t i = 0; i < 5; ++i) cache->set(keyOf(i), valueOf(i));
    EXPECT_TRUE(cache->save());
    EXPECT_EQ(open()->count(), 5u);
    base::sys::clearFaults();
    EXPECT_TRUE(cache->removeAll());
  }
}

TEST_F(BlobCacheFaultTest, KilledAtEveryCrashPoint) {
  int points = 0;
  for (const std::string& point : base::crashPoints()) {
    if (!point.starts_with("blob_cache.") && !point.starts_with("object.")) continue;
    ++points;
    SCOPED_TRACE(point);
    const auto cache = open();
    cache->set(keyOf(1), valueOf(1));
    cache->set("key", payload(1, 10));
    ASSERT_TRUE(cache->save());
    const int status = endOfCrashing(point, [&] {
      const auto victim = open();
      victim->set(keyOf(2), valueOf(2));
      victim->set("key", payload(2, 10));
      return victim->save() ? 0 : 1;
    });
    EXPECT_TRUE(wasKilled(status)) << status;
    // Either everything was saved or nothing; the old values exist in both cases.
    const auto after = open();
    EXPECT_TRUE(has(*after, 1));
    const bool isNew = has(*after, 2);
    EXPECT_EQ(isNew, point == "object.after_rename");
    EXPECT_EQ(after->get("key"), payload(isNew ? 2 : 1, 10));
    // The kernel released the lock of the dead process.
    after->set(keyOf(3), valueOf(3));
    ASSERT_TRUE(after->save());
    EXPECT_TRUE(has(*open(), 3));
    // Garbage collection removes what the dead process left.
    EXPECT_LE(leftovers(), 1u);
    collect(*store(), {}, {.leftoversOlderThan = std::chrono::seconds(0)});
    EXPECT_EQ(leftovers(), 0u);
    ASSERT_TRUE(after->removeAll());
  }
  EXPECT_EQ(points, 5);
}

}  // namespace
}  // namespace hearth::cache

#endif
