// SPDX-License-Identifier: Apache-2.0
#include "cache/blob/blob_table.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

#include "cache/testing/store_test_util.h"

namespace hearth::cache {
namespace {

constexpr BlobLimits kLimits = {.maxKeyBytes = 4, .maxValueBytes = 20, .maxBytes = 40};

BlobTable table(BlobRoom room, BlobEviction eviction = BlobEviction::kLeastRecentlyUsed) {
  return BlobTable(kLimits, {eviction, room});
}

// Full of entries of ten bytes each: "a" with nine bytes, and so on.
BlobTable filled(BlobRoom room, BlobEviction eviction = BlobEviction::kLeastRecentlyUsed) {
  BlobTable blobs = table(room, eviction);
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(blobs.set(std::string(1, static_cast<char>('a' + i)),
                          payload(static_cast<uint64_t>(i), 9), 100 + i));
  return blobs;
}

std::string keysOf(const BlobTable& blobs) {
  std::string keys;
  for (const auto& [key, blob] : blobs.blobs()) keys += key;
  return keys;
}

uint64_t bytesOf(const BlobTable& blobs) {
  return std::accumulate(blobs.blobs().begin(), blobs.blobs().end(), uint64_t{0},
                         [](uint64_t sum, const auto& entry) {
                           return sum + entry.first.size() + entry.second.value.size();
                         });
}

TEST(BlobTable, TakesNothingBeyondItsLimits) {
  BlobTable blobs = table(BlobRoom::kFit);
  EXPECT_FALSE(blobs.set("", payload(1, 1), 1));
  EXPECT_FALSE(blobs.set("key", {}, 1));
  EXPECT_FALSE(blobs.set("long1", payload(1, 1), 1));
  EXPECT_FALSE(blobs.set("key", payload(1, 21), 1));
  EXPECT_TRUE(blobs.blobs().empty());
  EXPECT_TRUE(blobs.set("long", payload(1, 20), 1));
  EXPECT_EQ(blobs.bytes(), 24u);
  // A new value that is too large leaves the old one.
  EXPECT_FALSE(blobs.set("long", payload(2, 21), 2));
  EXPECT_FALSE(blobs.set("long", {}, 2));
  EXPECT_EQ(blobs.find("long")->value, payload(1, 20));
  // Key and value are each within their limits, but not together.
  BlobTable small({.maxKeyBytes = 10, .maxValueBytes = 10, .maxBytes = 12}, {});
  EXPECT_FALSE(small.set("seven77", payload(1, 6), 1));
  EXPECT_TRUE(small.set("six666", payload(1, 6), 1));
  BlobTable none({.maxKeyBytes = 10, .maxValueBytes = 10, .maxBytes = 0}, {});
  EXPECT_FALSE(none.set("a", payload(1, 1), 1));
}

TEST(BlobTable, KeysAreAnyBytes) {
  BlobTable blobs = table(BlobRoom::kFit);
  const std::string zero("\0", 1);
  const std::string zeros("\0\0", 2);
  EXPECT_TRUE(blobs.set(zero, payload(1, 3), 1));
  EXPECT_TRUE(blobs.set(zeros, payload(2, 3), 2));
  EXPECT_TRUE(blobs.set("\xff", payload(3, 3), 3));
  EXPECT_EQ(blobs.find(zero)->value, payload(1, 3));
  EXPECT_EQ(blobs.find(zeros)->value, payload(2, 3));
  EXPECT_TRUE(blobs.erase(zero));
  EXPECT_FALSE(blobs.erase(zero));
  EXPECT_EQ(blobs.find(zero), nullptr);
  EXPECT_EQ(blobs.bytes(), bytesOf(blobs));
}

TEST(BlobTable, OverwritingCountsTheNewSizeOnly) {
  BlobTable blobs = table(BlobRoom::kFit);
  for (const size_t size : {20, 1, 15, 20}) {
    EXPECT_TRUE(blobs.set("k", payload(size, size), 1));
    EXPECT_EQ(blobs.find("k")->value, payload(size, size));
    EXPECT_EQ(blobs.bytes(), 1 + size);
  }
  // The replaced value makes room itself, so nothing else is evicted.
  EXPECT_TRUE(blobs.set("l", payload(2, 18), 2));
  EXPECT_EQ(blobs.bytes(), 40u);
  EXPECT_TRUE(blobs.set("k", payload(3, 19), 3));
  EXPECT_EQ(keysOf(blobs), "kl");
}

// Sets values, one after the other, of these sizes. Behind them the keys that are there afterwards.
struct Setting {
  const char* key;
  size_t size;
  const char* keys;
  bool isTaken = true;
};

void expectEvictions(BlobTable blobs, const std::vector<Setting>& settings) {
  int64_t time = 200;
  for (const Setting& setting : settings) {
    SCOPED_TRACE(time);
    EXPECT_EQ(blobs.set(setting.key, payload(9, setting.size), ++time), setting.isTaken);
    EXPECT_EQ(keysOf(blobs), setting.keys);
    EXPECT_EQ(blobs.bytes(), bytesOf(blobs));
  }
}

TEST(BlobTable, TheLeastRecentlyUsedGoFirst) {
  BlobTable blobs = filled(BlobRoom::kFit);
  blobs.touch("a", 200);
  blobs.touch("b", 50);  // earlier than its last use
  blobs.touch("none", 300);
  expectEvictions(std::move(blobs), {{"e", 9, "acde"}, {"f", 19, "aef"}});
}

TEST(BlobTable, HalvingFreesHalfOrTakesNothing) {
  // Half of the limit is free afterwards, which is too little for 20 bytes. Nothing more is evicted
  // for them when they come again.
  expectEvictions(filled(BlobRoom::kHalve), {{"e", 9, "cde"},
                                             {"f", 9, "cdef"},
                                             {"g", 20, "ef", false},
                                             {"g", 20, "ef", false},
                                             {"g", 19, "efg"}});
}

TEST(BlobTable, HalvingAndFittingDoesBoth) {
  expectEvictions(filled(BlobRoom::kFitAndHalve), {{"e", 9, "cde"}, {"f", 20, "ef"}});
}

TEST(BlobTable, RandomEvictionKeepsLimitsAndTheNewEntry) {
  for (const BlobRoom room : {BlobRoom::kFit, BlobRoom::kHalve, BlobRoom::kFitAndHalve}) {
    BlobTable blobs = table(room, BlobEviction::kRandom);
    for (int i = 0; i < 200; ++i) {
      const std::string key(1, static_cast<char>('a' + i % 26));
      const std::vector<uint8_t> value = payload(static_cast<uint64_t>(i), 9);
      ASSERT_TRUE(blobs.set(key, value, i));
      ASSERT_EQ(blobs.find(key)->value, value);
      ASSERT_LE(blobs.bytes(), kLimits.maxBytes);
      ASSERT_EQ(blobs.bytes(), bytesOf(blobs));
    }
  }
  // The oldest entry is not always the one that goes.
  bool hasKeptTheOldest = false;
  for (int round = 0; round < 1000 && !hasKeptTheOldest; ++round) {
    BlobTable blobs = filled(BlobRoom::kFit, BlobEviction::kRandom);
    ASSERT_TRUE(blobs.set("e", payload(9, 9), 200));
    hasKeptTheOldest = blobs.find("a") != nullptr;
  }
  EXPECT_TRUE(hasKeptTheOldest);
}

TEST(BlobTable, InsertedEntriesAreFittedAfterwards) {
  for (const BlobRoom room : {BlobRoom::kFit, BlobRoom::kHalve}) {
    BlobTable blobs = table(room);
    for (int i = 0; i < 8; ++i)
      EXPECT_TRUE(blobs.insert(std::string(1, static_cast<char>('a' + i)), {payload(1, 9), 8 - i}));
    EXPECT_FALSE(blobs.insert("long1", {payload(1, 9), 1}));
    EXPECT_FALSE(blobs.insert("z", {{}, 1}));
    EXPECT_EQ(blobs.bytes(), 80u);
    blobs.fit();
    EXPECT_EQ(keysOf(blobs), room == BlobRoom::kFit ? "abcd" : "ab");
    blobs.fit();
    EXPECT_EQ(blobs.bytes(), bytesOf(blobs));
  }
}

}  // namespace
}  // namespace hearth::cache
