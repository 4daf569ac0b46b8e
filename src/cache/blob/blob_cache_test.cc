// SPDX-License-Identifier: Apache-2.0
#include "cache/blob/blob_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "cache/testing/blob_cache_test_util.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

TEST_F(BlobCacheTest, TheNextProcessFindsWhatWasSaved) {
  {
    const auto cache = open();
    EXPECT_FALSE(cache->get(keyOf(1)));
    cache->set(keyOf(1), valueOf(1));
    EXPECT_TRUE(has(*cache, 1));
    EXPECT_FALSE(has(*open(), 1));
    ASSERT_TRUE(cache->save());
    cache->set(keyOf(2), valueOf(2));
  }
  const auto cache = open();
  EXPECT_TRUE(has(*cache, 1));
  EXPECT_FALSE(cache->get(keyOf(2)));
  EXPECT_EQ(cache->count(), 1u);
  EXPECT_EQ(cache->bytes(), keyOf(1).size() + valueOf(1).size());
  struct stat status;
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0400u);
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(BlobCacheTest, ABufferThatIsTooSmallIsNotWritten) {
  const auto cache = open();
  cache->set("key", payload(1, 10));
  std::vector<uint8_t> buffer(12, 7);
  EXPECT_EQ(cache->get("none", buffer), 0u);
  EXPECT_EQ(cache->get("key", std::span(buffer).first(9)), 10u);
  EXPECT_EQ(buffer, std::vector<uint8_t>(12, 7));
  EXPECT_EQ(cache->get("key", buffer), 10u);
  EXPECT_TRUE(equal(std::span(buffer).first(10), payload(1, 10)));
  EXPECT_EQ(buffer[10], 7);
}

TEST_F(BlobCacheTest, WithoutAFolderEntriesStayInMemory) {
  BlobCache cache(nullptr, kName);
  cache.set("key", payload(1, 10));
  EXPECT_TRUE(cache.save());
  EXPECT_EQ(cache.get("key"), payload(1, 10));
  EXPECT_EQ(cache.verify(), 1u);
  cache.remove("key");
  EXPECT_FALSE(cache.get("key"));
  cache.set("key", payload(1, 10));
  EXPECT_TRUE(cache.removeAll());
  EXPECT_EQ(cache.count(), 0u);
}

TEST_F(BlobCacheTest, NothingIsWrittenWhenNothingChanges) {
  const auto cache = open();
  EXPECT_TRUE(cache->save());
  EXPECT_FALSE(fs::exists(file()));
  cache->set(keyOf(1), valueOf(1));
  ASSERT_TRUE(cache->save());
  struct stat before;
  struct stat after;
  ASSERT_EQ(::stat(file().c_str(), &before), 0);
  cache->set(keyOf(1), valueOf(1));
  cache->set("", valueOf(1));
  cache->remove(keyOf(2));
  EXPECT_TRUE(has(*cache, 1));
  ASSERT_TRUE(cache->save());
  ASSERT_EQ(::stat(file().c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(BlobCacheTest, TheOrderOfUseOutlivesTheProcess) {
  const BlobLimits limits = {.maxBytes = 4 * (5 + 100)};
  const auto value = [](uint64_t number) {
    return payload(number, 100);
  };
  {
    const auto cache = open(limits);
    for (uint64_t i = 1; i <= 4; ++i) cache->set(keyOf(i), value(i));
    EXPECT_TRUE(cache->get(keyOf(1)));
    // A buffer that is too small does not count as a use.
    EXPECT_EQ(cache->get(keyOf(2), std::span<uint8_t>()), 100u);
    ASSERT_TRUE(cache->save());
  }
  {
    const auto cache = open(limits);
    cache->set(keyOf(5), value(5));
    ASSERT_TRUE(cache->save());
  }
  const auto cache = open(limits);
  EXPECT_FALSE(cache->get(keyOf(2)));
  for (const uint64_t i : {1, 3, 4, 5}) EXPECT_EQ(cache->get(keyOf(i)), value(i));
}

TEST_F(BlobCacheTest, EntriesOfAnotherProcessAreMergedAndSeen) {
  const auto one = open();
  const auto other = open();
  one->set(keyOf(1), valueOf(1));
  other->set(keyOf(2), valueOf(2));
  EXPECT_FALSE(other->get(keyOf(1)));
  ASSERT_TRUE(one->save());
  // The entry is seen before the other cache saves.
  EXPECT_TRUE(has(*other, 1));
  ASSERT_TRUE(other->save());
  EXPECT_TRUE(has(*one, 2));
  // The last save of a key wins, and both caches see it.
  one->set("key", payload(1, 10));
  other->set("key", payload(2, 10));
  ASSERT_TRUE(other->save());
  EXPECT_EQ(one->get("key"), payload(1, 10));
  ASSERT_TRUE(one->save());
  EXPECT_EQ(other->get("key"), payload(1, 10));
  EXPECT_EQ(open()->count(), 3u);
}

TEST_F(BlobCacheTest, RemovedEntriesStayRemoved) {
  const auto one = open();
  const auto other = open();
  one->set(keyOf(1), valueOf(1));
  one->set(keyOf(2), valueOf(2));
  ASSERT_TRUE(one->save());
  EXPECT_TRUE(has(*other, 1));
  one->remove(keyOf(1));
  EXPECT_FALSE(one->get(keyOf(1)));
  ASSERT_TRUE(one->save());
  // The copy in the other cache's memory does not restore the value.
  other->set(keyOf(3), valueOf(3));
  ASSERT_TRUE(other->save());
  EXPECT_FALSE(open()->get(keyOf(1)));
  EXPECT_EQ(open()->count(), 2u);
  ASSERT_TRUE(one->removeAll());
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_FALSE(other->get(keyOf(2)));
  other->set(keyOf(4), valueOf(4));
  ASSERT_TRUE(other->save());
  EXPECT_EQ(one->count(), 1u);
}

TEST_F(BlobCacheTest, LimitsHoldForMergedEntries) {
  const BlobLimits limits = {.maxKeyBytes = 6, .maxValueBytes = 100, .maxBytes = 500};
  for (const BlobEviction eviction : {BlobEviction::kLeastRecentlyUsed, BlobEviction::kRandom})
    for (const BlobRoom room : {BlobRoom::kFit, BlobRoom::kHalve, BlobRoom::kFitAndHalve}) {
      const auto one = open(limits, {eviction, room});
      const auto other = open(limits, {eviction, room});
      for (uint64_t i = 10; i < 14; ++i) {
        one->set(keyOf(i), valueOf(i));
        other->set(keyOf(i + 10), valueOf(i + 10));
      }
      ASSERT_TRUE(one->save());
      ASSERT_TRUE(other->save());
      const auto cache = open(limits);
      EXPECT_LE(cache->bytes(), limits.maxBytes);
      EXPECT_GE(cache->count(), 2u);
      EXPECT_LE(fs::file_size(file()), maxBlobCacheFile(limits));
      EXPECT_TRUE(eviction == BlobEviction::kRandom || has(*cache, 23));
      ASSERT_TRUE(one->removeAll());
    }
}

TEST_F(BlobCacheTest, AnEntryBeyondSmallerLimitsIsNotTaken) {
  const auto wide = open({.maxBytes = 1000});
  wide->set("long key", payload(1, 200));
  wide->set("key", payload(2, 10));
  ASSERT_TRUE(wide->save());
  const auto narrow = open({.maxKeyBytes = 4, .maxValueBytes = 100, .maxBytes = 300});
  EXPECT_EQ(narrow->get("key"), payload(2, 10));
  EXPECT_EQ(narrow->count(), 1u);
  // Under these limits the file is too large, so it is not even read.
  EXPECT_EQ(open({.maxBytes = 10})->count(), 0u);
}

TEST_F(BlobCacheTest, AReadOnlyFolderIsOnlyRead) {
  const auto writer = open();
  writer->set(keyOf(1), valueOf(1));
  ASSERT_TRUE(writer->save());
  BlobCache reader(store(StoreFolder::Access::kRead), kName);
  EXPECT_TRUE(has(reader, 1));
  reader.set(keyOf(2), valueOf(2));
  EXPECT_TRUE(has(reader, 2));
  EXPECT_EQ(reader.save().error().reason, StoreReason::kReadOnly);
  EXPECT_EQ(reader.removeAll().error().reason, StoreReason::kReadOnly);
  EXPECT_EQ(writer->count(), 1u);
}

TEST_F(BlobCacheTest, ManyThreadsShareAnObjectAndAFile) {
  constexpr uint64_t kThreads = 8;
  constexpr uint64_t kEach = 20;
  const auto shared = open();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto own = open();
      BlobCache& cache = t % 2 == 0 ? *shared : *own;
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t number = t * kEach + i;
        cache.set(keyOf(number), valueOf(number));
        if (i % 5 == 0 && !cache.save()) ++wrong;
        if (!has(cache, number)) ++wrong;
      }
      if (!cache.save()) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const auto cache = open();
  EXPECT_EQ(cache->count(), kThreads * kEach);
  for (uint64_t i = 0; i < kThreads * kEach; ++i) EXPECT_TRUE(has(*cache, i)) << i;
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(BlobCacheTest, ManyProcessesLoseNothing) {
  constexpr uint64_t kProcesses = 12;
  constexpr uint64_t kEach = 10;
  std::vector<pid_t> children;
  for (uint64_t p = 0; p < kProcesses; ++p)
    children.push_back(startChild([&] {
      const auto cache = open();
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t number = p * kEach + i;
        cache->set(keyOf(number), valueOf(number));
        if (!cache->save()) return 1;
        for (uint64_t mine = p * kEach; mine <= number; ++mine)
          if (!has(*cache, mine)) return 2;
      }
      return 0;
    }));
  // A reader finds a whole file at any time, and never fewer entries than before.
  const auto reader = open();
  uint64_t most = 0;
  while (!children.empty()) {
    const StoreResult<uint64_t> whole = reader->verify();
    EXPECT_TRUE(whole) << whole.error().message;
    EXPECT_GE(whole.value_or(0), most);
    most = whole.value_or(0);
    int status = -1;
    const pid_t ended = ::waitpid(children.back(), &status, WNOHANG);
    if (ended == 0) {
      ::usleep(200);
      continue;
    }
    EXPECT_TRUE(ended == children.back() && succeeded(status)) << status;
    children.pop_back();
  }
  const auto cache = open();
  EXPECT_EQ(cache->count(), kProcesses * kEach);
  for (uint64_t i = 0; i < kProcesses * kEach; ++i) EXPECT_TRUE(has(*cache, i)) << i;
  EXPECT_EQ(leftovers(), 0u);
}

TEST_F(BlobCacheTest, ALockThatAForkedChildInheritsIsReleased) {
  const auto cache = open();
  cache->set(keyOf(1), valueOf(1));
  ASSERT_TRUE(cache->save());
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = startChild([&] {
    cache->closeInChild();
    char end;
    return static_cast<int>(::read(pipe[0], &end, 1)) - 1;
  });
  cache->set(keyOf(2), valueOf(2));
  EXPECT_TRUE(cache->save());
  EXPECT_TRUE(open()->removeAll());
  EXPECT_EQ(::write(pipe[1], "x", 1), 1);
  EXPECT_TRUE(succeeded(waitForChild(child)));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace hearth::cache
