// SPDX-License-Identifier: Apache-2.0
// A hard link to one of the user's files is planted where a cache writes; open() does not refuse
// that. The file must stay unchanged, and the cache must work without it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "cache/compilation/mapping_manager.h"
#include "cache/testing/bundle_test_util.h"
#include "cache/testing/memory_store_test.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

// One of the user's files, which must not change.
class Victim {
 public:
  // SQLite takes zeros at the beginning of a file for an old journal.
  Victim(const fs::path& folder, std::vector<uint8_t> bytes)
      : path_(folder / "victim"), bytes_(std::move(bytes)) {
    fs::remove(path_);
    writeFile(path_, bytes_);
    fs::permissions(path_, fs::perms(0600));
    const timespec times[2] = {{1'500'000'000, 0}, {1'500'000'000, 0}};
    ::utimensat(AT_FDCWD, path_.c_str(), times, 0);
  }
  void plantAt(const fs::path& place) const {
    fs::remove(place);
    fs::create_hard_link(path_, place);
  }
  bool isUntouched() const {
    struct stat status;
    return ::stat(path_.c_str(), &status) == 0 && status.st_mtim.tv_sec == 1'500'000'000 &&
           (status.st_mode & 07777) == 0600 && readFile(path_) == bytes_;
  }

 private:
  const fs::path path_;
  const std::vector<uint8_t> bytes_;
};

std::vector<std::vector<uint8_t>> contents() {
  std::vector<uint8_t> zeros = payload(5, 5000);
  std::fill_n(zeros.begin(), 100, 0);
  return {payload(5, 5000), zeros, {}, std::vector<uint8_t>(200'000)};
}

class PlantedLinkTest : public MemoryStoreTest {
 protected:
  // Makes the store write every kind of file.
  void useAll() {
    writeFile(folder_.path() / "model", payload(9, 100'000));
    const timespec times[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
    ::utimensat(AT_FDCWD, (folder_.path() / "model").c_str(), times, 0);
    for (int round = 0; round < 2; ++round) {
      const auto store = open();
      ASSERT_NE(store, nullptr);
      BuildTicket ticket = store->acquire(segmentKey(1), std::chrono::seconds(1));
      const auto segment = store->publish(segmentKey(1), payload(1, 50'000));
      ASSERT_TRUE(segment) << segment.error().message;
      ASSERT_TRUE(store->publishPlan(planKey(1), payload(2, 500), std::vector{segmentKey(1)}));
      ASSERT_TRUE(store->findPlan(planKey(1)));
      store->remember(std::vector<Fact>{{"a fact", payload(3, 32)}});
      const base::Descriptor model(::open((folder_.path() / "model").c_str(), O_RDONLY));
      ASSERT_TRUE(store->contentHash(model.get(), 0, 100'000));
      ticket.release();
      store->settle();
      ASSERT_TRUE(store->prune({}));
    }
  }
};

TEST_F(PlantedLinkTest, NothingIsWrittenThroughAHardLinkInAStore) {
  useAll();
  const std::vector<fs::path> places = {root() / "build.lock",
                                        root() / "identity.sqlite",
                                        root() / "identity.sqlite-journal",
                                        root() / "identity.sqlite-wal",
                                        root() / "identity.sqlite-shm",
                                        root() / "identity.latest",
                                        root() / "machine.blobs",
                                        root() / "stamps" / planKey(1).hex(),
                                        planPath(planKey(1)),
                                        segmentPath(segmentKey(1), true),
                                        segmentPath(segmentKey(1), false)};
  for (const fs::path& place : places)
    for (const auto& bytes : contents()) {
      SCOPED_TRACE(place.filename().string() + " " + std::to_string(bytes.size()));
      const Victim victim(folder_.path(), bytes);
      victim.plantAt(place);
      useAll();
      EXPECT_TRUE(victim.isUntouched());
      const auto store = open();
      EXPECT_TRUE(equal(store->find(segmentKey(1)).segment->bytes(), payload(1, 50'000)));
      // Locks still work: one process builds, and the others wait.
      EXPECT_EQ(store->acquire(segmentKey(2)).role(), BuildTicket::Role::kBuild);
    }
}

// A copy of the store that consists of hard links, as some backups do, must not be written either.
TEST_F(PlantedLinkTest, ABackupMadeOfHardLinksStaysAsItIs) {
  useAll();
  const fs::path backup = folder_.path() / "backup";
  fs::copy(root(), backup, fs::copy_options::recursive | fs::copy_options::create_hard_links);
  const auto content = [&] {
    std::map<std::string, std::pair<std::vector<uint8_t>, fs::file_time_type>> all;
    for (const auto& entry : fs::recursive_directory_iterator(backup))
      if (entry.is_regular_file())
        all[entry.path().string()] = {readFile(entry.path()), entry.last_write_time()};
    return all;
  };
  const auto before = content();
  {
    const auto store = open();
    // Files that are only read are found as before.
    EXPECT_TRUE(store->find(segmentKey(1)));
    EXPECT_TRUE(store->findPlan(planKey(1)));
    EXPECT_TRUE(store->publish(segmentKey(7), payload(7, 100)));
  }
  useAll();
  EXPECT_EQ(content(), before);
}

TEST_F(PlantedLinkTest, NothingIsWrittenThroughAHardLinkBesideTheCacheMap) {
  const fs::path folder = folder_.path() / "state" / "hearth";
  const auto use = [&](uint64_t number) {
    const CacheOwner owner{segmentKey(1).bytes, 1000, segmentKey(2).bytes};
    const CachedContent content{segmentKey(number).bytes, number, number};
    MappingManager manager(folder);
    (void)manager.remember(owner, content);
    (void)manager.find(owner);
    manager.touch(owner, content);
  };
  use(1);
  for (const char* name : {"cache-map.sqlite", "cache-map.sqlite-journal", "cache-map.sqlite-wal",
                           "cache-map.sqlite-shm", "cache-map.latest"})
    for (const auto& bytes : contents()) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(bytes.size()));
      const Victim victim(folder_.path(), bytes);
      victim.plantAt(folder / name);
      use(2);
      use(3);
      EXPECT_TRUE(victim.isUntouched());
    }
}

class PlantedBundleLinkTest : public BundleTest {};

TEST_F(PlantedBundleLinkTest, NothingIsWrittenThroughAHardLinkInPlaceOfABundle) {
  for (const fs::path& place : {path(), building()})
    for (const auto& bytes : contents()) {
      SCOPED_TRACE(place.filename().string() + " " + std::to_string(bytes.size()));
      fs::remove(path());
      const Victim victim(folder_.path(), bytes);
      victim.plantAt(place);
      if (const auto store = BundleStore::open(options())) {
        (void)build(**store);
        (*store)->remember(std::vector<Fact>{{"a fact", payload(3, 32)}});
        (*store)->settle();
      }
      EXPECT_TRUE(victim.isUntouched());
      fs::remove(place);
    }
}

// The notes are the only part of a bundle that is written in place.
TEST_F(PlantedBundleLinkTest, NotesAreNotWrittenIntoABundleThatHasAnotherName) {
  ASSERT_EQ(build(*open()), 0);
  const fs::path other = folder_.path() / "other";
  fs::create_hard_link(path(), other);
  const std::vector<uint8_t> before = readFile(other);
  {
    const auto store = open();
    EXPECT_TRUE(store->find(keys()[0]));
    store->remember(std::vector<Fact>{{"a fact", payload(3, 32)}});
    store->checkBeforeExit();
    store->settle();
  }
  EXPECT_EQ(readFile(other), before);
}

}  // namespace
}  // namespace hearth::cache
