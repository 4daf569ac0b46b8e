// SPDX-License-Identifier: Apache-2.0
// Files in the store's folder are damaged or planted.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <set>

#include "cache/testing/memory_store_test.h"
#include "cache/testing/planted_files.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

class StoreHostileTest : public MemoryStoreTest {
 protected:
  // Creates a store with one segment and one plan, both under their final names, and closes it.
  void prepare(size_t size = 5000) {
    const auto store = open();
    ASSERT_TRUE(store->publish(segmentKey(1), payload(1, size)));
    ASSERT_TRUE(store->publishPlan(planKey(1), payload(2, 500), std::vector{segmentKey(1)}));
    store->settle();
  }

  // Expects the store to work as if the object had never existed.
  void expectReplaceable() {
    const auto store = open();
    const auto segment = store->publish(segmentKey(1), payload(1, 5000));
    ASSERT_TRUE(segment) << segment.error().message;
    ASSERT_TRUE(store->publishPlan(planKey(1), payload(2, 500), {}));
    store->settle();
    StoreOptions strict = options();
    strict.mode = StoreMode::kStrict;
    const FoundSegment found = open(strict)->find(segmentKey(1));
    ASSERT_TRUE(found) << storeReasonName(found.reason);
    EXPECT_TRUE(equal(found.segment->bytes(), payload(1, 5000)));
    EXPECT_TRUE(open(strict)->findPlan(planKey(1)));
  }
};

TEST_F(StoreHostileTest, AFolderOfOthersIsRefused) {
  fs::create_directory(root());
  const auto reason = [&] {
    const auto store = WeightStore::open(options());
    return store ? StoreReason::kNone : store.error().reason;
  };
  fs::permissions(root(), fs::perms(0720));
  EXPECT_EQ(reason(), StoreReason::kNotPrivate);
  fs::permissions(root(), fs::perms(0702));
  EXPECT_EQ(reason(), StoreReason::kNotPrivate);
  fs::permissions(root(), fs::perms(0700));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(root().c_str(), 65534, 65534), 0);
    EXPECT_EQ(reason(), StoreReason::kNotOwned);
    ASSERT_EQ(::chown(root().c_str(), 0, 0), 0);
  }
  EXPECT_EQ(reason(), StoreReason::kNone);
}

TEST_F(StoreHostileTest, LinksInPlaceOfFoldersAreNotFollowed) {
  const fs::path elsewhere = folder_.path() / "elsewhere";
  fs::create_directory(elsewhere);
  fs::create_directory_symlink(elsewhere, root());
  EXPECT_EQ(WeightStore::open(options()).error().reason, StoreReason::kLink);
  StoreOptions slash = options();
  slash.path += "/";
  EXPECT_EQ(WeightStore::open(slash).error().reason, StoreReason::kLink);
  fs::remove(root());
  fs::create_directory(root());
  for (const char* part : {"segments", "plans", "stamps", "tmp"}) {
    removeFolder(root() / part);
    fs::create_directory_symlink(elsewhere, root() / part);
    EXPECT_EQ(WeightStore::open(options()).error().reason, StoreReason::kLink) << part;
    fs::remove(root() / part);
  }
  const std::string shard = segmentKey(1).hex().substr(0, 2);
  fs::create_directory(root() / "segments");
  fs::create_directory_symlink(elsewhere, root() / "segments" / shard);
  EXPECT_EQ(open()->publish(segmentKey(1), payload(1, 10)).error().reason, StoreReason::kLink);
  EXPECT_TRUE(fs::is_empty(elsewhere));
  // Symbolic links on the path to the store are up to the user.
  fs::create_directory_symlink(folder_.path(), folder_.path() / "link");
  StoreOptions through = options();
  through.path = (folder_.path() / "link" / "other").string();
  EXPECT_TRUE(WeightStore::open(through));
}

TEST_F(StoreHostileTest, AFileInPlaceOfTheStoreIsRefused) {
  writeFile(root(), payload(1, 10));
  EXPECT_EQ(WeightStore::open(options()).error().reason, StoreReason::kNotAFolder);
}

TEST_F(StoreHostileTest, PlantedFilesInPlaceOfObjectsAreIgnoredAndReplaced) {
  const fs::path target = folder_.path() / "target";
  std::vector<PlantedFile> plants = plantedFiles();
  plants.push_back({"empty file", [](const fs::path& path, const fs::path&) {
                      writeFile(path, {});
                    }});
  for (const auto& [name, plant] : plants) {
    SCOPED_TRACE(name);
    prepare();
    for (const fs::path& path : {segmentPath(segmentKey(1)), planPath(planKey(1))}) {
      removeFolder(target);
      fs::rename(path, target);
      plant(path, target);
    }
    const auto store = open();
    const FoundSegment found = store->find(segmentKey(1));
    EXPECT_FALSE(found);
    EXPECT_TRUE(found.reason == StoreReason::kForeign || found.reason == StoreReason::kCorrupt);
    EXPECT_FALSE(store->findPlan(planKey(1)));
    expectReplaceable();
    removeFolder(root());
  }
}

TEST_F(StoreHostileTest, PlantedFilesOfTheStoreItselfDoNoHarm) {
  using Plant = void (*)(const fs::path& path);
  for (const Plant plant :
       {Plant([](const fs::path& path) { ::mkfifo(path.c_str(), 0600); }),
        Plant([](const fs::path& path) { fs::create_directory(path); }),
        Plant([](const fs::path& path) { fs::create_symlink("/nowhere/x", path); }),
        Plant([](const fs::path& path) { writeFile(path, payload(9, 9000)); })}) {
    prepare();
    for (const char* name : {"identity.sqlite", "identity.latest", "build.lock", "machine.blobs"}) {
      removeFolder(root() / name);
      plant(root() / name);
    }
    const auto store = open();
    EXPECT_TRUE(store->find(segmentKey(1)));
    const BuildTicket ticket = store->acquire(segmentKey(2));
    EXPECT_NE(ticket.role(), BuildTicket::Role::kFound);
    EXPECT_TRUE(store->publish(segmentKey(2), payload(2, 100)));
    const fs::path model = folder_.path() / "model";
    writeFile(model, payload(5, 1000));
    const auto file = base::Descriptor::open(model, O_RDONLY);
    EXPECT_TRUE(store->contentHash(file->get(), 0, 1000));
    EXPECT_FALSE(store->recall("fact"));
    store->remember(std::vector<Fact>{{"fact", payload(6, 10)}});
    EXPECT_EQ(store->recall("fact"), payload(6, 10));
    store->settle();
    removeFolder(root());
  }
}

TEST_F(StoreHostileTest, AnObjectOfAnotherNameIsNotTaken) {
  prepare();
  fs::create_directories(segmentPath(segmentKey(2)).parent_path());
  fs::copy_file(segmentPath(segmentKey(1)), segmentPath(segmentKey(2)));
  fs::copy_file(planPath(planKey(1)), planPath(planKey(2)));
  EXPECT_EQ(open()->find(segmentKey(2)).reason, StoreReason::kCorrupt);
  EXPECT_EQ(open()->findPlan(planKey(2)).error().reason, StoreReason::kCorrupt);
}

TEST_F(StoreHostileTest, CutAndGrownObjectsAreDropped) {
  prepare();
  const std::vector<uint8_t> whole = readFile(segmentPath(segmentKey(1)));
  for (const size_t size :
       {0ul, 1ul, 127ul, 128ul, 4999ul, whole.size() - 1, whole.size() + 1, whole.size() + 4096}) {
    std::vector<uint8_t> bytes = whole;
    bytes.resize(size);
    writeFile(segmentPath(segmentKey(1)), bytes);
    fs::permissions(segmentPath(segmentKey(1)), fs::perms(0600));
    EXPECT_EQ(open()->find(segmentKey(1)).reason, StoreReason::kCorrupt) << size;
    EXPECT_FALSE(fs::exists(segmentPath(segmentKey(1))));
  }
  // A file that consists of the largest possible hole costs no time.
  writeFile(segmentPath(segmentKey(1)), whole);
  fs::permissions(segmentPath(segmentKey(1)), fs::perms(0600));
  if (::truncate(segmentPath(segmentKey(1)).c_str(), off_t{1} << 43) == 0) {
    EXPECT_EQ(open()->find(segmentKey(1)).reason, StoreReason::kCorrupt);
  }
  expectReplaceable();
}

TEST_F(StoreHostileTest, AnyFlippedBitOfASegmentIsFoundAndNeverUsedInStrictMode) {
  prepare();
  const fs::path path = segmentPath(segmentKey(1));
  const std::vector<uint8_t> whole = readFile(path);
  std::set<size_t> positions;
  for (size_t i = 0; i < whole.size(); i += i < 5000 ? 499 : 3) positions.insert(i);
  for (const size_t position : positions) {
    SCOPED_TRACE(position);
    std::vector<uint8_t> bytes = whole;
    bytes[position] ^= static_cast<uint8_t>(1u << (position % 8));
    const auto plant = [&] {
      writeFile(path, bytes);
      fs::permissions(path, fs::perms(0600));
    };
    plant();
    StoreOptions strict = options();
    strict.mode = StoreMode::kStrict;
    EXPECT_EQ(open(strict)->find(segmentKey(1)).reason, StoreReason::kCorrupt);
    EXPECT_FALSE(fs::exists(path));
    plant();
    const auto store = open();
    std::atomic<int> reports = 0;
    const auto token = store->addCorruptionHandler([&](const SegmentKey& key) {
      if (key == segmentKey(1)) ++reports;
    });
    const FoundSegment found = store->find(segmentKey(1));
    store->settle();
    EXPECT_TRUE(!found || found.segment->isCorrupt());
    EXPECT_EQ(reports.load(), 1);
    EXPECT_EQ(store->counters().segmentsCorrupt, 1u);
    EXPECT_FALSE(store->find(segmentKey(1)));
    EXPECT_FALSE(fs::exists(path));
  }
  expectReplaceable();
}

TEST_F(StoreHostileTest, AnyFlippedBitOfAPlanIsFound) {
  prepare();
  const fs::path path = planPath(planKey(1));
  const std::vector<uint8_t> whole = readFile(path);
  for (size_t position = 0; position < whole.size(); position += 5) {
    std::vector<uint8_t> bytes = whole;
    bytes[position] ^= static_cast<uint8_t>(1u << (position % 8));
    writeFile(path, bytes);
    fs::permissions(path, fs::perms(0600));
    EXPECT_EQ(open()->findPlan(planKey(1)).error().reason, StoreReason::kCorrupt) << position;
    EXPECT_FALSE(fs::exists(path));
  }
}

TEST_F(StoreHostileTest, VerifyFindsAndDropsWrongObjects) {
  prepare((3u << 20) + 5);
  std::vector<uint8_t> bytes = readFile(segmentPath(segmentKey(1)));
  bytes[2'500'000] ^= 4;
  writeFile(segmentPath(segmentKey(1)), bytes);
  fs::permissions(segmentPath(segmentKey(1)), fs::perms(0600));
  bytes = readFile(planPath(planKey(1)));
  bytes[200] ^= 4;
  writeFile(planPath(planKey(1)), bytes);
  fs::permissions(planPath(planKey(1)), fs::perms(0600));
  uint64_t last = 0;
  auto report = open()->verifyAll([&](uint64_t done, uint64_t all) {
    EXPECT_LE(done, all);
    last = all;
    return true;
  });
  ASSERT_TRUE(report);
  EXPECT_GT(last, 3u << 20);
  EXPECT_EQ(report->wrongSegments, 1u);
  EXPECT_EQ(report->wrongPlans, 1u);
  report = open()->verifyAll({});
  EXPECT_EQ(report->wrongSegments + report->wrongPlans + report->segments + report->plans, 0u);
}

TEST_F(StoreHostileTest, AWrongSegmentOfASystemStoreIsPassedOver) {
  prepare();
  std::vector<uint8_t> bytes = readFile(segmentPath(segmentKey(1)));
  bytes[17] ^= 1;
  writeFile(segmentPath(segmentKey(1)), bytes);
  fs::permissions(segmentPath(segmentKey(1)), fs::perms(0600));
  StoreOptions both = options();
  both.systemStores = {both.path};
  both.path = (folder_.path() / "own").string();
  const auto store = open(both);
  ASSERT_TRUE(store->find(segmentKey(1)));
  store->settle();
  EXPECT_EQ(store->find(segmentKey(1)).reason, StoreReason::kCorrupt);
  const auto published = store->publish(segmentKey(1), payload(1, 5000));
  ASSERT_TRUE(published);
  EXPECT_EQ(store->find(segmentKey(1)).segment, *published);
  EXPECT_TRUE(fs::exists(segmentPath(segmentKey(1))));
}

TEST_F(StoreHostileTest, AStoreDeletedWhileInUseIsCreatedAgain) {
  prepare();
  const auto store = open();
  const FoundSegment found = store->find(segmentKey(1));
  removeFolder(root());
  EXPECT_TRUE(equal(found.segment->bytes(), payload(1, 5000)));
  EXPECT_FALSE(store->find(segmentKey(3)));
  const auto published = store->publish(segmentKey(2), payload(2, 3000));
  ASSERT_TRUE(published) << published.error().message;
  EXPECT_TRUE(fs::exists(root()));
  EXPECT_EQ(store->findPlan(planKey(1)).error().reason, StoreReason::kAbsent);
  removeFolder(root() / "segments");
  removeFolder(root() / "plans");
  const auto again = store->publish(segmentKey(4), payload(4, 3000));
  EXPECT_TRUE(again || again.error().reason == StoreReason::kGone);
  store->settle();
}

}  // namespace
}  // namespace hearth::cache
