// SPDX-License-Identifier: Apache-2.0
#include "cache/prefix/prefix_store.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/crash_point.h"
#include "cache/object/file_facts.h"
#include "cache/testing/crash_points.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {
namespace {

constexpr size_t kSize = (1u << 20) + 5000;

PrefixKey prefixKey(uint64_t number) {
  return {segmentKey(number).bytes};
}

// Blocks 1, 2, 3, … follow each other.
PrefixBlock blockOf(uint64_t number) {
  return {.key = prefixKey(number),
          .predecessor = prefixKey(number - 1),
          .position = static_cast<uint32_t>(128 * (number - 1)),
          .tokens = 128,
          .model = "model.litertlm"};
}

class PrefixStoreTest : public testing::Test {
 protected:
  std::filesystem::path root() const { return folder_.path() / "store"; }
  std::filesystem::path fileOf(uint64_t number) const {
    return root() / "prefixes" / (prefixKey(number).hex() + ".prefix");
  }
  std::shared_ptr<PrefixStore> open(PrefixStoreOptions options = {}) const {
    options.path = root().string();
    auto store = PrefixStore::open(options);
    if (!store) ADD_FAILURE() << store.error().message;
    return store.value_or(nullptr);
  }
  static StoreReason reasonOf(const PrefixStore& store, uint64_t number, size_t size = kSize) {
    const auto found = store.read(prefixKey(number), size);
    if (!found) return found.error().reason;
    EXPECT_TRUE(equal(std::span<const uint8_t>(found->block.data(), size), payload(number, size)));
    return StoreReason::kNone;
  }
  static void write(const PrefixStore& store, uint64_t number) {
    const StoreStatus written = store.write(blockOf(number), payload(number, kSize));
    EXPECT_TRUE(written) << written.error().message;
  }
  void age(uint64_t number, std::chrono::hours hours) const {
    std::filesystem::last_write_time(fileOf(number),
                                     std::filesystem::file_time_type::clock::now() - hours);
  }

  TempFolder folder_{TempFolder::Place::kMemory};
};

TEST_F(PrefixStoreTest, AnotherProcessFindsABlock) {
  write(*open(), 1);
  const auto store = open();
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kNone);
  EXPECT_EQ(reasonOf(*store, 2), StoreReason::kAbsent);
  const auto entries = store->entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].block, blockOf(1));
  EXPECT_FALSE(entries[0].isCorrupt);
  EXPECT_GT(entries[0].bytesOnDisk, kSize);
  struct stat status;
  ASSERT_EQ(::stat(fileOf(1).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07377, 0u);  // the user may read it, and nobody else
  EXPECT_TRUE(store->remove(prefixKey(1)));
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kAbsent);
  EXPECT_TRUE(store->remove(prefixKey(1)));
}

TEST_F(PrefixStoreTest, ADamagedBlockIsRemoved) {
  const auto store = open();
  const std::vector<uint8_t> right = [&] {
    write(*store, 1);
    return readFile(fileOf(1));
  }();
  for (const size_t at :
       {size_t{0}, kSize - 1, kSize + 3, kSize + 100, right.size() - 200, right.size() - 1}) {
    SCOPED_TRACE(at);
    write(*store, 1);
    std::vector<uint8_t> flipped = right;
    flipped[at] ^= 0x10;
    writeFile(fileOf(1), flipped);
    EXPECT_EQ(reasonOf(*store, 1), StoreReason::kCorrupt);
    EXPECT_FALSE(std::filesystem::exists(fileOf(1)));
  }
  for (const size_t size : {size_t{0}, size_t{100}, kSize, right.size() - 1}) {
    SCOPED_TRACE(size);
    write(*store, 1);
    writeFile(fileOf(1), std::span(right).first(size));
    EXPECT_EQ(reasonOf(*store, 1), StoreReason::kCorrupt);
    EXPECT_EQ(reasonOf(*store, 1), StoreReason::kAbsent);
  }
  write(*store, 1);
  writeFile(fileOf(1), std::span(right).first(kSize));
  ASSERT_EQ(store->entries().size(), 1u);
  EXPECT_TRUE(store->entries()[0].isCorrupt);
  // The file of another block, and a block of another size.
  write(*store, 1);
  std::filesystem::rename(fileOf(1), fileOf(2));
  EXPECT_EQ(reasonOf(*store, 2), StoreReason::kCorrupt);
  write(*store, 1);
  EXPECT_EQ(reasonOf(*store, 1, kSize + 4), StoreReason::kCorrupt);
}

TEST_F(PrefixStoreTest, WhatOthersCanReadOrWriteIsNotBelieved) {
  const auto store = open();
  for (const unsigned mode : {0440u, 0404u, 0620u}) {
    write(*store, 1);
    std::filesystem::permissions(fileOf(1), std::filesystem::perms(mode));
    EXPECT_EQ(reasonOf(*store, 1), StoreReason::kForeign);
  }
  std::filesystem::remove(fileOf(1));
  std::filesystem::create_symlink("/etc/hostname", fileOf(1));
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kForeign);
  std::filesystem::remove(fileOf(1));
  std::filesystem::create_directory(fileOf(1));
  EXPECT_NE(reasonOf(*store, 1), StoreReason::kNone);
  write(*store, 1);
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kNone);
}

TEST_F(PrefixStoreTest, ABlockGoesBeforeItsPredecessor) {
  const auto store = open({.maxBytes = 4 * kSize});
  for (const uint64_t number : {1, 2, 3}) write(*store, number);
  // The first block was used last by a text that went on otherwise.
  age(1, std::chrono::hours(7));
  age(2, std::chrono::hours(5));
  age(3, std::chrono::hours(6));
  write(*store, 10);
  EXPECT_EQ(reasonOf(*store, 3), StoreReason::kAbsent);
  for (const uint64_t number : {1, 2, 10}) EXPECT_EQ(reasonOf(*store, number), StoreReason::kNone);
  EXPECT_EQ(store->write(blockOf(4), payload(4, 5 * kSize)).error().reason,
            StoreReason::kOverLimit);
}

TEST_F(PrefixStoreTest, WhatIsNotUsedExpires) {
  const auto store = open({.maxAge = std::chrono::hours(10)});
  for (const uint64_t number : {1, 2, 3}) write(*store, number);
  age(1, std::chrono::hours(9));
  age(2, std::chrono::hours(11));
  age(3, std::chrono::hours(11));
  EXPECT_EQ(reasonOf(*store, 2), StoreReason::kAbsent);
  EXPECT_FALSE(std::filesystem::exists(fileOf(2)));
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kNone);  // which is a use
  write(*store, 10);
  EXPECT_FALSE(std::filesystem::exists(fileOf(3)));
  for (const auto& entry : store->entries())
    EXPECT_GT(std::chrono::nanoseconds(entry.lastUsed),
              std::chrono::system_clock::now().time_since_epoch() - std::chrono::hours(1));
}

TEST_F(PrefixStoreTest, AReadOnlyStoreIsNotChanged) {
  const PrefixStoreOptions readOnly{.mode = StoreMode::kReadOnly};
  EXPECT_FALSE(PrefixStore::open({.path = root().string(), .mode = StoreMode::kReadOnly}));
  EXPECT_FALSE(PrefixStore::open({.path = root().string(), .mode = StoreMode::kOff}));
  write(*open(), 1);
  write(*open(), 2);
  std::vector<uint8_t> wrong = readFile(fileOf(2));
  wrong[0] ^= 1;
  writeFile(fileOf(2), wrong);
  const auto store = open(readOnly);
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kNone);
  EXPECT_EQ(reasonOf(*store, 2), StoreReason::kCorrupt);
  EXPECT_EQ(store->write(blockOf(3), payload(3, kSize)).error().reason, StoreReason::kReadOnly);
  EXPECT_EQ(store->remove(prefixKey(1)).error().reason, StoreReason::kReadOnly);
  EXPECT_EQ(store->entries().size(), 2u);
}

TEST_F(PrefixStoreTest, AWeightStoreSaysWhereItIs) {
  StoreOptions options{.path = "/a", .mode = StoreMode::kReadOnly};
  EXPECT_EQ(PrefixStoreOptions::of(options)->path, "/a");
  EXPECT_EQ(PrefixStoreOptions::of(options)->mode, StoreMode::kReadOnly);
  options.bundle = "/a/file";
  EXPECT_EQ(PrefixStoreOptions::of(options).error().reason, StoreReason::kOff);
  EXPECT_EQ(PrefixStoreOptions::of({.path = "/a", .mode = StoreMode::kOff}).error().reason,
            StoreReason::kOff);
  EXPECT_EQ(PrefixStoreOptions::of({}).error().reason, StoreReason::kNoHome);
}

TEST_F(PrefixStoreTest, AHeadThatCannotBeIsRefused) {
  const std::vector<uint8_t> head = makePrefixHead(blockOf(1));
  ASSERT_TRUE(parsePrefixHead(head));
  // Magic, version, number of tokens and size of the name.
  for (const size_t at : {0, 8, 19, 23}) {
    std::vector<uint8_t> wrong = head;
    wrong[at] = 0xff;
    EXPECT_FALSE(at == 19 ? parsePrefixHead(std::span(wrong).first(255)) : parsePrefixHead(wrong));
  }
  PrefixBlock block = blockOf(1);
  block.tokens = 0;
  EXPECT_FALSE(parsePrefixHead(makePrefixHead(block)));
  block.tokens = 2;
  block.position = UINT32_MAX - 1;
  EXPECT_FALSE(parsePrefixHead(makePrefixHead(block)));
  block = blockOf(1);
  block.model = std::string(300, 'a');
  EXPECT_EQ(parsePrefixHead(makePrefixHead(block))->model, std::string(200, 'a'));
}

#ifdef HEARTH_TEST_HOOKS
TEST_F(PrefixStoreTest, ABlockIsComparedOnceWhileItsFileIsUnchanged) {
  int64_t changed = 1'700'000'000'000'000'001;
  changeFileFacts([&](int, FileFacts& facts) {
    facts.system = EXT4_SUPER_MAGIC;
    facts.verity.reset();
    facts.modified = facts.changed = changed;
  });
  write(*open(), 1);
  EXPECT_EQ(reasonOf(*open(), 1), StoreReason::kNone);
  std::vector<uint8_t> wrong = readFile(fileOf(1));
  wrong[kSize - 1] ^= 1;
  writeFile(fileOf(1), wrong);
  // By its facts, the file is the one that was compared.
  EXPECT_TRUE(open()->read(prefixKey(1), kSize));
  ++changed;
  EXPECT_EQ(reasonOf(*open(), 1), StoreReason::kCorrupt);
  changeFileFacts({});
}

TEST_F(PrefixStoreTest, KilledAtEveryCrashPoint) {
  const auto work = [&] {
    const auto store = PrefixStore::open({.path = root().string(), .maxBytes = 2 * kSize});
    if (!store) return 1;
    for (const uint64_t number : {1, 2, 3})
      if (!(*store)->write(blockOf(number), payload(number, kSize))) return 2;
    return 0;
  };
  int points = 0;
  for (const std::string& point : base::crashPoints()) {
    if (!point.starts_with("object.") && !point.starts_with("segment.") &&
        !point.starts_with("prefix."))
      continue;
    for (const int pass : {1, 2, 3}) {
      SCOPED_TRACE(point + ":" + std::to_string(pass));
      const int status = endOfCrashing(point + ":" + std::to_string(pass), work);
      if (wasKilled(status)) ++points;
      const auto store = open();
      for (const uint64_t number : {1, 2, 3}) {
        const StoreReason reason = reasonOf(*store, number);
        EXPECT_TRUE(reason == StoreReason::kNone || reason == StoreReason::kAbsent);
      }
      // The next process can use what is left.
      EXPECT_TRUE(succeeded(waitForChild(startChild(work))));
    }
  }
  EXPECT_GE(points, 9);
}
#endif

}  // namespace
}  // namespace hearth::cache
