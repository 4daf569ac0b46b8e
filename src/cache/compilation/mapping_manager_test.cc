// SPDX-License-Identifier: Apache-2.0
#include "cache/compilation/mapping_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "cache/testing/store_test_util.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

base::Sha256Digest digest(uint64_t number) {
  return segmentKey(number).bytes;
}

CacheOwner owner(uint64_t token, uint64_t build = 1, uid_t uid = 1000) {
  return {digest(build), uid, digest(token)};
}

CachedContent content(uint64_t number) {
  return {digest(number), number, 2 * number};
}

class MappingManagerTest : public testing::Test {
 protected:
  std::string folder() const { return memory_.path() / "state" / "hearth"; }
  fs::path file() const { return fs::path(folder()) / "cache-map.sqlite"; }
  fs::path latestFile() const { return fs::path(folder()) / "cache-map.latest"; }
  // The contents that another process would find.
  std::vector<CachedContent> found(const CacheOwner& who) const {
    return MappingManager(folder()).find(who).value_or(std::vector<CachedContent>());
  }

  // The same, without a query of the database.
  std::optional<CachedContent> latest(const CacheOwner& who) const {
    return MappingManager(folder()).findLatest(who);
  }

  TempFolder memory_{TempFolder::Place::kMemory};
};

TEST_F(MappingManagerTest, RemembersForOtherProcesses) {
  {
    MappingManager manager(folder());
    EXPECT_FALSE(manager.find(owner(1)));
    EXPECT_FALSE(fs::exists(folder())) << "Nothing is made before something is remembered.";
    ASSERT_TRUE(manager.remember(owner(1), content(10)));
    ASSERT_TRUE(manager.remember(owner(1), content(11)));
    EXPECT_THAT(manager.find(owner(1)).value(), testing::SizeIs(2));
  }
  EXPECT_THAT(found(owner(1)), testing::UnorderedElementsAre(content(10), content(11)));
  EXPECT_THAT(found(owner(2)), testing::IsEmpty());
  struct stat status;
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(MappingManagerTest, OtherBuildsAndUsersHaveTheirOwnEntries) {
  MappingManager manager(folder());
  ASSERT_TRUE(manager.remember(owner(1), content(10)));
  EXPECT_THAT(manager.find(owner(1, 2)).value(), testing::IsEmpty());
  EXPECT_THAT(manager.find(owner(1, 1, 1001)).value(), testing::IsEmpty());
}

TEST_F(MappingManagerTest, KeepsTheLatestOfAToken) {
  MappingManager manager(folder());
  for (uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(manager.remember(owner(1), content(i)));
  ASSERT_TRUE(manager.remember(owner(2), content(1)));
  const auto contents = manager.find(owner(1)).value();
  ASSERT_EQ(contents.size(), size_t{MappingManager::kMostPerToken});
  EXPECT_EQ(contents.front(), content(19));
  EXPECT_EQ(contents.back(), content(12));
}

TEST_F(MappingManagerTest, BuildsDoNotEvictEachOthersEntries) {
  MappingManager manager(folder());
  ASSERT_TRUE(manager.remember(owner(1, 1), content(1)));
  for (uint64_t i = 0; i < MappingManager::kMostPerBuild + 10; ++i)
    ASSERT_TRUE(manager.remember(owner(100 + i, 2), content(1)));
  EXPECT_THAT(manager.find(owner(1, 1)).value(), testing::ElementsAre(content(1)));
  EXPECT_THAT(manager.find(owner(100, 2)).value(), testing::IsEmpty()) << "the oldest";
  EXPECT_THAT(manager.find(owner(110, 2)).value(), testing::SizeIs(1));
  // Old builds are evicted.
  for (uint64_t i = 0; i < MappingManager::kMostBuilds; ++i)
    ASSERT_TRUE(manager.remember(owner(1, 10 + i), content(1)));
  EXPECT_THAT(manager.find(owner(1, 1)).value(), testing::IsEmpty());
}

TEST_F(MappingManagerTest, DamageOnlyForgets) {
  ASSERT_TRUE(MappingManager(folder()).remember(owner(1), content(10)));
  const auto size = fs::file_size(file());
  for (uintmax_t at = 0; at < size; at += 37) {
    {
      std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(static_cast<std::streamoff>(at));
      const char byte = static_cast<char>(stream.get() ^ 0x40);
      stream.seekp(static_cast<std::streamoff>(at));
      stream.put(byte);
    }
    for (const CachedContent& known : found(owner(1))) EXPECT_EQ(known, content(10)) << at;
    MappingManager manager(folder());
    const Status written = manager.remember(owner(1), content(10));
    if (!written) {
      // A write has detected the damage, and the next one creates a new file.
      EXPECT_TRUE(manager.remember(owner(1), content(10))) << at;
    }
  }
  EXPECT_THAT(found(owner(1)), testing::ElementsAre(content(10)));
}

TEST_F(MappingManagerTest, FilesOfOthersAreNotBelieved) {
  ASSERT_TRUE(MappingManager(folder()).remember(owner(1), content(10)));
  ASSERT_EQ(::chmod(file().c_str(), 0666), 0);
  EXPECT_FALSE(MappingManager(folder()).find(owner(1)));
  EXPECT_FALSE(MappingManager(folder()).remember(owner(1), content(10)));
  ASSERT_EQ(::chmod(file().c_str(), 0600), 0);
  EXPECT_TRUE(MappingManager(folder()).find(owner(1)));
  const fs::path elsewhere = memory_.path() / "elsewhere";
  fs::rename(file(), elsewhere);
  fs::create_symlink(elsewhere, file());
  EXPECT_FALSE(MappingManager(folder()).find(owner(1)));
  EXPECT_FALSE(MappingManager(folder()).remember(owner(1), content(10)));
}

TEST_F(MappingManagerTest, AMapThatVanishesIsCreatedAgain) {
  MappingManager manager(folder());
  ASSERT_TRUE(manager.remember(owner(1), content(10)));
  fs::remove_all(memory_.path() / "state");
  EXPECT_FALSE(manager.find(owner(1)));
  ASSERT_TRUE(manager.remember(owner(1), content(11)));
  EXPECT_THAT(found(owner(1)), testing::ElementsAre(content(11)));
}

TEST_F(MappingManagerTest, ManyProcessesWriteAtOnce) {
  std::vector<pid_t> children;
  for (uint64_t child = 0; child < 8; ++child)
    children.push_back(startChild([&] {
      MappingManager manager(folder());
      bool good = true;
      for (uint64_t i = 0; i < 10; ++i)
        good &= manager.remember(owner(child), content(i)).has_value();
      return good ? 0 : 1;
    }));
  for (const pid_t child : children) EXPECT_TRUE(succeeded(waitForChild(child)));
  for (uint64_t child = 0; child < 8; ++child)
    EXPECT_THAT(found(owner(child)), testing::SizeIs(MappingManager::kMostPerToken));
}

TEST_F(MappingManagerTest, WithoutAFolderNothingIsKnown) {
  MappingManager manager("");
  EXPECT_FALSE(manager.remember(owner(1), content(10)));
  EXPECT_FALSE(manager.find(owner(1)));
}

TEST_F(MappingManagerTest, FindsAllEntriesOfATokenAndAllOfASize) {
  MappingManager manager(folder());
  ASSERT_TRUE(manager.remember(owner(1, 1), content(10)));
  ASSERT_TRUE(manager.remember(owner(1, 2, 7), content(11)));
  ASSERT_TRUE(manager.remember(owner(2, 1), content(10)));
  const auto under = manager.findUnder(digest(1));
  ASSERT_TRUE(under);
  ASSERT_THAT(*under, testing::SizeIs(2));
  EXPECT_EQ(under->front().content, content(11));
  EXPECT_EQ(under->front().owner.build, digest(2));
  EXPECT_EQ(under->front().owner.uid, 7u);
  EXPECT_GT(under->front().used, 0);
  const auto sized = manager.findSized(10, 20);
  ASSERT_TRUE(sized);
  ASSERT_THAT(*sized, testing::SizeIs(2));
  EXPECT_EQ(sized->front().owner.token, digest(2));
  EXPECT_THAT(*manager.findUnder(digest(9)), testing::IsEmpty());
  EXPECT_THAT(*manager.findSized(10, 21), testing::IsEmpty());
}

TEST_F(MappingManagerTest, TheLatestIsKnownAsLongAsTheMapIsTheSame) {
  EXPECT_FALSE(latest(owner(1)));
  EXPECT_FALSE(fs::exists(folder()));
  MappingManager manager(folder());
  ASSERT_TRUE(manager.remember(owner(1), content(10)));
  EXPECT_EQ(latest(owner(1)), content(10));
  ASSERT_TRUE(manager.remember(owner(1), content(11)));
  EXPECT_EQ(latest(owner(1)), content(11));
  EXPECT_FALSE(latest(owner(2)));
  EXPECT_FALSE(latest(owner(1, 2)));
  EXPECT_FALSE(latest(owner(1, 1, 1001)));
  // Something has been written since, so only the database knows whether the entry still exists.
  ASSERT_TRUE(manager.remember(owner(2), content(12)));
  EXPECT_EQ(latest(owner(2)), content(12));
  EXPECT_FALSE(latest(owner(1)));
  ASSERT_THAT(manager.find(owner(1)).value(), testing::SizeIs(2));
  manager.touch(owner(1), content(10));
  EXPECT_EQ(latest(owner(1)), content(10)) << "It was used last.";
}

TEST_F(MappingManagerTest, TheLatestIsBelievedOnlyWithTheMap) {
  ASSERT_TRUE(MappingManager(folder()).remember(owner(1), content(10)));
  for (const fs::path& path : {file(), latestFile()}) {
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
    EXPECT_FALSE(latest(owner(1))) << path;
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    ASSERT_THAT(found(owner(1)), testing::SizeIs(1));
  }
  // The mode of the database is part of its state.
  MappingManager manager(folder());
  ASSERT_TRUE(manager.find(owner(1)));
  manager.touch(owner(1), content(10));
  EXPECT_EQ(latest(owner(1)), content(10));
  const fs::path elsewhere = memory_.path() / "elsewhere";
  fs::rename(latestFile(), elsewhere);
  fs::create_symlink(elsewhere, latestFile());
  EXPECT_FALSE(latest(owner(1)));
  fs::remove(latestFile());
  fs::rename(elsewhere, latestFile());
  EXPECT_EQ(latest(owner(1)), content(10));
  fs::rename(file(), elsewhere);
  EXPECT_FALSE(latest(owner(1)));
  fs::copy_file(elsewhere, file());
  EXPECT_FALSE(latest(owner(1))) << "Another file with the same bytes.";
  EXPECT_THAT(found(owner(1)), testing::ElementsAre(content(10)));
}

TEST_F(MappingManagerTest, ADamagedLatestIsNone) {
  ASSERT_TRUE(MappingManager(folder()).remember(owner(1), content(10)));
  const std::vector<uint8_t> right = readFile(latestFile());
  const auto first = static_cast<size_t>(
      std::ranges::find_if(right, [](uint8_t byte) { return byte != 0; }) - right.begin());
  ASSERT_LT(first, right.size());
  for (size_t at = first; at < right.size(); ++at) {
    std::vector<uint8_t> wrong = right;
    wrong[at] ^= 0x40;
    writeFile(latestFile(), wrong);
    EXPECT_FALSE(latest(owner(1))) << at;
  }
  writeFile(latestFile(), std::vector(right.begin(), right.end() - 1));
  EXPECT_FALSE(latest(owner(1)));
  EXPECT_THAT(found(owner(1)), testing::ElementsAre(content(10)));
  writeFile(latestFile(), right);
  EXPECT_EQ(latest(owner(1)), content(10));
}

TEST_F(MappingManagerTest, ALockedFileIsAReasonAndStays) {
  ASSERT_TRUE(MappingManager(folder()).remember(owner(1), content(10)));
  {
    const LockHolder holder(file());
    MappingManager manager(folder());
    const auto found = manager.find(owner(1));
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code(), ErrorCode::kIo);
    EXPECT_FALSE(manager.remember(owner(2), content(11)));
    // The copy that was made for this state of the file is still valid.
    EXPECT_EQ(latest(owner(1)), content(10));
  }
  EXPECT_THAT(found(owner(1)), testing::ElementsAre(content(10)));
}

// A clock was a hundred years ahead and has been corrected.
TEST_F(MappingManagerTest, EntriesOfAWrongClockAreEvictedFirst) {
  MappingManager manager(folder());
  ASSERT_TRUE(manager.remember(owner(1), content(100)));
  const int64_t time = manager.findUnder(digest(1)).value().front().used;
  constexpr int64_t kCentury = int64_t{100} * 365 * 24 * 3600 * 1'000'000'000;
  ASSERT_TRUE(manager.remember(owner(1), content(101), time + kCentury));
  for (uint64_t i = 0; i < MappingManager::kMostPerToken - 1; ++i)
    ASSERT_TRUE(manager.remember(owner(1), content(i)));
  EXPECT_THAT(found(owner(1)), testing::Contains(content(100)));
  EXPECT_THAT(found(owner(1)), testing::Not(testing::Contains(content(101))));
}

TEST_F(MappingManagerTest, LookingChangesNothing) {
  MappingManager looking(folder(), MappingManager::Use::kLook);
  EXPECT_EQ(looking.findUnder(digest(1)).error().code(), ErrorCode::kNotFound);
  EXPECT_FALSE(looking.remember(owner(1), content(10)));
  EXPECT_FALSE(fs::exists(folder()));
  ASSERT_TRUE(MappingManager(folder()).remember(owner(1), content(10)));
  EXPECT_THAT(*looking.findUnder(digest(1)), testing::SizeIs(1));
  EXPECT_FALSE(looking.remember(owner(1), content(11)));
  looking.touch(owner(1), content(10));
  EXPECT_THAT(found(owner(1)), testing::ElementsAre(content(10)));
  // Only a writer removes a damaged file.
  const std::vector<uint8_t> damaged = payload(1, 5000);
  writeFile(file(), damaged);
  MappingManager again(folder(), MappingManager::Use::kLook);
  EXPECT_EQ(again.findUnder(digest(1)).error().code(), ErrorCode::kIo);
  EXPECT_EQ(readFile(file()), damaged);
}

}  // namespace
}  // namespace hearth::cache
