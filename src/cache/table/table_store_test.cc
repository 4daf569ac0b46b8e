// SPDX-License-Identifier: Apache-2.0
#include "cache/table/table_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/crash_point.h"
#include "cache/testing/crash_points.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {
namespace {

constexpr size_t kTableSize = (size_t{1} << 20) + 5000;

TableKey tableKey(uint64_t number) {
  return {segmentKey(number).bytes};
}

class TableStoreTest : public testing::Test {
 protected:
  std::filesystem::path root() const { return folder_.path() / "store"; }
  std::filesystem::path fileOf(uint64_t number) const {
    return root() / "tables" / (tableKey(number).hex() + ".table");
  }
  std::shared_ptr<const TableStore> open(TableStoreOptions options = {}) const {
    options.path = root().string();
    auto store = TableStore::open(options);
    if (!store) ADD_FAILURE() << store.error().message;
    return store.value_or(nullptr);
  }
  static StoreReason reasonOf(const TableStore& store, uint64_t number) {
    const auto table = store.read(tableKey(number));
    if (!table) return table.error().reason;
    EXPECT_TRUE(
        equal(std::span<const uint8_t>(table->data(), table->size()), payload(number, kTableSize)));
    return StoreReason::kNone;
  }
  static void write(const TableStore& store, uint64_t number) {
    const StoreStatus written = store.write(tableKey(number), payload(number, kTableSize));
    EXPECT_TRUE(written) << written.error().message;
  }
  void age(uint64_t number, std::chrono::hours hours) const {
    std::filesystem::last_write_time(fileOf(number),
                                     std::filesystem::file_time_type::clock::now() - hours);
  }

  TempFolder folder_{TempFolder::Place::kMemory};
};

TEST_F(TableStoreTest, AnotherProcessMapsATable) {
  write(*open(), 1);
  const auto store = open();
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kNone);
  EXPECT_EQ(reasonOf(*store, 2), StoreReason::kAbsent);
  struct stat status;
  ASSERT_EQ(::stat(fileOf(1).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07377, 0u);  // the user may read it, and nobody else
  // What is mapped stays when the file is removed.
  const auto table = store->read(tableKey(1));
  ASSERT_TRUE(table);
  std::filesystem::remove(fileOf(1));
  EXPECT_TRUE(
      equal(std::span<const uint8_t>(table->data(), table->size()), payload(1, kTableSize)));
}

TEST_F(TableStoreTest, ADamagedTableIsRemoved) {
  const auto store = open();
  write(*store, 1);
  const std::vector<uint8_t> right = readFile(fileOf(1));
  for (const size_t at : {size_t{0}, kTableSize - 1, kTableSize + 100, right.size() - 1}) {
    SCOPED_TRACE(at);
    write(*store, 1);
    std::vector<uint8_t> flipped = right;
    flipped[at] ^= 0x10;
    writeFile(fileOf(1), flipped);
    EXPECT_EQ(reasonOf(*store, 1), StoreReason::kCorrupt);
    EXPECT_EQ(reasonOf(*store, 1), StoreReason::kAbsent);
  }
  for (const size_t size : {size_t{0}, size_t{100}, kTableSize, right.size() - 1}) {
    SCOPED_TRACE(size);
    write(*store, 1);
    writeFile(fileOf(1), std::span(right).first(size));
    EXPECT_EQ(reasonOf(*store, 1), StoreReason::kCorrupt);
    EXPECT_EQ(reasonOf(*store, 1), StoreReason::kAbsent);
  }
  // The file of another table.
  write(*store, 1);
  std::filesystem::rename(fileOf(1), fileOf(2));
  EXPECT_EQ(reasonOf(*store, 2), StoreReason::kCorrupt);
}

TEST_F(TableStoreTest, WhatOthersCanWriteIsNotBelieved) {
  const auto store = open();
  write(*store, 1);
  std::filesystem::permissions(fileOf(1), std::filesystem::perms(0620));
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kForeign);
  std::filesystem::remove(fileOf(1));
  std::filesystem::create_symlink("/etc/hostname", fileOf(1));
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kForeign);
  write(*store, 1);
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kNone);
}

TEST_F(TableStoreTest, TablesThatWereNotUsedForLongGoFirst) {
  const auto store = open({.maxBytes = 4 * kTableSize, .maxAge = std::chrono::hours(10)});
  for (const uint64_t number : {1, 2, 3}) write(*store, number);
  age(1, std::chrono::hours(9));
  age(2, std::chrono::hours(8));
  age(3, std::chrono::hours(11));
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kNone);  // which is a use
  write(*store, 4);
  EXPECT_EQ(reasonOf(*store, 3), StoreReason::kAbsent);
  write(*store, 5);
  EXPECT_EQ(reasonOf(*store, 2), StoreReason::kAbsent);
  for (const uint64_t number : {1, 4, 5}) EXPECT_EQ(reasonOf(*store, number), StoreReason::kNone);
  EXPECT_EQ(store->write(tableKey(6), payload(6, 5 * kTableSize)).error().reason,
            StoreReason::kOverLimit);
}

TEST_F(TableStoreTest, ATableSaysWhoMadeIt) {
  write(*open({.kind = TableKind::kTokenizer}), 1);
  write(*open({.kind = TableKind::kDelegate}), 2);
  write(*open(), 3);
  std::map<TableKey, std::optional<TableKind>> kinds;
  for (const TableStore::Entry& entry : open()->entries()) kinds[entry.key] = entry.kind;
  const std::map<TableKey, std::optional<TableKind>> expected = {
      {tableKey(1), TableKind::kTokenizer},
      {tableKey(2), TableKind::kDelegate},
      {tableKey(3), std::nullopt}};
  EXPECT_EQ(kinds, expected);
  // One that does not say it serves, and one of another kind does not.
  const auto store = open({.kind = TableKind::kDelegate});
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kAbsent);
  EXPECT_EQ(reasonOf(*store, 2), StoreReason::kNone);
  EXPECT_EQ(reasonOf(*store, 3), StoreReason::kNone);
  for (const uint64_t number : {2, 3}) {
    store->remove(tableKey(number));
    EXPECT_EQ(reasonOf(*store, number), StoreReason::kAbsent);
  }
  EXPECT_EQ(store->entries().size(), 1u);
}

TEST_F(TableStoreTest, ADamagedTableThatSaysNoKindIsRemoved) {
  write(*open(), 1);
  std::vector<uint8_t> wrong = readFile(fileOf(1));
  wrong[0] ^= 1;
  writeFile(fileOf(1), wrong);
  const auto store = open({.kind = TableKind::kTokenizer});
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kCorrupt);
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kAbsent);
}

// The limit is that of all kinds.
TEST_F(TableStoreTest, ATableOfOneKindGoesForOneOfAnother) {
  write(*open(), 1);
  age(1, std::chrono::hours(2));
  const auto store = open({.kind = TableKind::kTokenizer, .maxBytes = 2 * kTableSize});
  write(*store, 2);
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kAbsent);
  EXPECT_EQ(reasonOf(*store, 2), StoreReason::kNone);
}

TEST_F(TableStoreTest, AReadOnlyStoreIsNotChanged) {
  const TableStoreOptions readOnly{.path = root().string(), .mode = StoreMode::kReadOnly};
  EXPECT_FALSE(TableStore::open(readOnly));
  EXPECT_FALSE(TableStore::open({.path = root().string(), .mode = StoreMode::kOff}));
  write(*open(), 1);
  std::vector<uint8_t> wrong = readFile(fileOf(1));
  const auto store = open(readOnly);
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kNone);
  EXPECT_EQ(store->write(tableKey(2), payload(2, kTableSize)).error().reason,
            StoreReason::kReadOnly);
  wrong[0] ^= 1;
  writeFile(fileOf(1), wrong);
  EXPECT_EQ(reasonOf(*store, 1), StoreReason::kCorrupt);
  EXPECT_TRUE(std::filesystem::exists(fileOf(1)));
}

TEST_F(TableStoreTest, AWeightStoreSaysWhereItIs) {
  StoreOptions options{.path = "/a", .mode = StoreMode::kReadOnly};
  const auto of = [](const StoreOptions& store) {
    return TableStoreOptions::of(store, TableKind::kDelegate);
  };
  EXPECT_EQ(of(options)->path, "/a");
  EXPECT_EQ(of(options)->kind, TableKind::kDelegate);
  EXPECT_EQ(of(options)->mode, StoreMode::kReadOnly);
  options.bundle = "/a/file";
  EXPECT_EQ(of(options).error().reason, StoreReason::kOff);
  EXPECT_EQ(of({.path = "/a", .mode = StoreMode::kOff}).error().reason, StoreReason::kOff);
  EXPECT_EQ(of({}).error().reason, StoreReason::kNoHome);
}

#ifdef HEARTH_TEST_HOOKS
TEST_F(TableStoreTest, KilledAtEveryCrashPoint) {
  const auto work = [&] {
    const auto store = TableStore::open({.path = root().string()});
    if (!store) return 1;
    for (const uint64_t number : {1, 2})
      if (!(*store)->write(tableKey(number), payload(number, kTableSize))) return 2;
    return 0;
  };
  int points = 0;
  for (const std::string& point : base::crashPoints()) {
    if (!point.starts_with("object.") && !point.starts_with("segment.")) continue;
    for (const int pass : {1, 2}) {
      SCOPED_TRACE(point + ":" + std::to_string(pass));
      if (wasKilled(endOfCrashing(point + ":" + std::to_string(pass), work))) ++points;
      const auto store = open();
      for (const uint64_t number : {1, 2}) {
        const StoreReason reason = reasonOf(*store, number);
        EXPECT_TRUE(reason == StoreReason::kNone || reason == StoreReason::kAbsent);
      }
      // The next process can use what is left.
      EXPECT_TRUE(succeeded(waitForChild(startChild(work))));
    }
  }
  EXPECT_GE(points, 6);
}
#endif

}  // namespace
}  // namespace hearth::cache
