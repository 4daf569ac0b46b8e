// SPDX-License-Identifier: Apache-2.0
#include "cache/identity/identity_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "base/descriptor.h"
#include "base/fork_test_util.h"
#include "cache/testing/crash_points.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kChanged = 1'700'000'000 * kSecond;

class IdentityTableTest : public testing::Test {
 protected:
  IdentityTableTest()
      : memory_(TempFolder::Place::kMemory),
        folder_(base::Descriptor::open(memory_.path(), O_RDONLY).value()) {}

  IdentityTable table(bool writable = true) const {
    return IdentityTable(folder_.get(), memory_.path(), writable);
  }
  fs::path database() const { return memory_.path() / "identity.sqlite"; }
  fs::path latest() const { return memory_.path() / "identity.latest"; }
  // Forces the next look-up to use the database.
  void loseLatest() const { fs::remove(latest()); }

  static FileIdentity identity(uint64_t inode = 1) {
    return {.generation = {.device = 1,
                           .inode = inode,
                           .size = 100,
                           .modified = kChanged - kSecond,
                           .changed = kChanged},
            .born = kChanged - 2 * kSecond,
            .proof = ChangeProof::kStamps};
  }

  TempFolder memory_;
  base::Descriptor folder_;
  const base::Sha256Digest digest_ = segmentKey(9).bytes;
};

TEST_F(IdentityTableTest, RemembersAcrossObjects) {
  EXPECT_FALSE(table().content(identity(), 0, 100));
  EXPECT_FALSE(fs::exists(database())) << "Who looks makes no file.";
  table().rememberContent(identity(), 0, 100, digest_, kChanged + 10 * kSecond);
  EXPECT_EQ(table().content(identity(), 0, 100), digest_);
  EXPECT_EQ(table(false).content(identity(), 0, 100), digest_);
  EXPECT_FALSE(table().content(identity(), 1, 99));
}

TEST_F(IdentityTableTest, ClosesWhatItHasOpened) {
  const auto openFiles = [] {
    const fs::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  const auto use = [&] {
    table().rememberContent(identity(), 0, 100, digest_, kChanged + 10 * kSecond);
    loseLatest();
    EXPECT_EQ(table().content(identity(), 0, 100), digest_);
  };
  use();
  const auto before = openFiles();
  for (int i = 0; i < 3; ++i) use();
  EXPECT_EQ(openFiles(), before);
}

TEST_F(IdentityTableTest, AContentHasItsDigestByItsName) {
  const base::Sha256Digest name = segmentKey(3).bytes;
  EXPECT_FALSE(table().namedContent(name));
  table().nameContent(name, digest_);
  EXPECT_EQ(table().namedContent(name), digest_);
  EXPECT_EQ(table(false).namedContent(name), digest_);
  EXPECT_FALSE(table().namedContent(digest_));
}

TEST_F(IdentityTableTest, TheTagKeyIsMadeOnce) {
  EXPECT_FALSE(table().tagKey());
  EXPECT_FALSE(table(false).makeTagKey());
  IdentityTable early = table();
  EXPECT_FALSE(early.tagKey());
  const auto key = table().makeTagKey();
  ASSERT_TRUE(key);
  EXPECT_NE(*key, base::UniversalHash::Key{});
  EXPECT_EQ(table().makeTagKey(), key);
  EXPECT_EQ(table().tagKey(), key);
  EXPECT_EQ(early.makeTagKey(), key) << "The first process counts.";
  fs::remove(database());
  const auto other = table().makeTagKey();
  ASSERT_TRUE(other);
  EXPECT_NE(*other, *key);
}

// Whoever has the key could make another content of a known name.
TEST_F(IdentityTableTest, AKeyThatOthersCanReadIsNotUsed) {
  ASSERT_TRUE(table().makeTagKey());
  for (const fs::perms perms : {fs::perms::group_read, fs::perms::others_read}) {
    fs::permissions(database(), fs::perms::owner_read | fs::perms::owner_write | perms);
    EXPECT_FALSE(table().tagKey());
    EXPECT_FALSE(table().makeTagKey());
  }
  fs::permissions(database(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(table().tagKey());
  EXPECT_FALSE(table(false).tagKey()) << "A store that is only read may be everybody's.";
}

TEST_F(IdentityTableTest, TheLatestEntriesNeedNoDatabase) {
  table().rememberContent(identity(), 0, 100, digest_, kChanged + 10 * kSecond);
  loseLatest();
  // A look-up restores a lost copy, unless the table is read-only.
  EXPECT_EQ(table(false).content(identity(), 0, 100), digest_);
  EXPECT_FALSE(fs::exists(latest()));
  EXPECT_EQ(table().content(identity(), 0, 100), digest_);
  fs::remove(database());
  EXPECT_EQ(table().content(identity(), 0, 100), digest_);
  EXPECT_EQ(table(false).content(identity(), 0, 100), digest_);
  EXPECT_FALSE(fs::exists(database()));
}

TEST_F(IdentityTableTest, DamagedLatestEntriesAreNone) {
  table().rememberContent(identity(), 0, 100, digest_, kChanged + 10 * kSecond);
  fs::remove(database());
  const std::vector<uint8_t> whole = readFile(latest());
  const auto begin = std::ranges::find_if(whole, [](uint8_t byte) { return byte != 0; });
  const auto first = static_cast<size_t>(begin - whole.begin());
  ASSERT_LT(first, whole.size());
  for (size_t position = first; position < whole.size(); ++position) {
    std::vector<uint8_t> bytes = whole;
    bytes[position] ^= static_cast<uint8_t>(1u << (position % 8));
    writeFile(latest(), bytes);
    EXPECT_FALSE(table(false).content(identity(), 0, 100)) << position;
  }
  for (const size_t size : {size_t{0}, first, first + 1, whole.size() - 1}) {
    writeFile(latest(), std::span(whole).first(size));
    EXPECT_FALSE(table(false).content(identity(), 0, 100)) << size;
  }
  writeFile(latest(), whole);
  EXPECT_EQ(table(false).content(identity(), 0, 100), digest_);
}

TEST_F(IdentityTableTest, EntriesThatShareAPlaceAreKeptInTheDatabase) {
  constexpr uint64_t kFiles = 1500;  // more than there are places
  IdentityTable remembered = table();
  for (uint64_t i = 1; i <= kFiles; ++i)
    remembered.rememberContent(identity(i), 0, 100, segmentKey(i).bytes, kChanged + 10 * kSecond);
  for (uint64_t i = 1; i <= kFiles; ++i)
    EXPECT_EQ(remembered.content(identity(i), 0, 100), segmentKey(i).bytes) << i;
}

TEST_F(IdentityTableTest, EveryPartOfTheIdentityCounts) {
  IdentityTable remembered = table();
  remembered.rememberContent(identity(), 0, 100, digest_, kChanged + 10 * kSecond);
  FileIdentity other[8];
  std::ranges::fill(other, identity());
  other[0].generation.device ^= 1;
  other[1].generation.inode ^= 2;
  other[2].generation.size += 1;
  other[3].generation.modified += 1;
  other[4].generation.changed += 1;
  other[5].born += 1;
  other[6].proof = ChangeProof::kMounting;
  other[7].scope[31] ^= 1;
  for (const FileIdentity& file : other) EXPECT_FALSE(remembered.content(file, 0, 100));
  EXPECT_EQ(remembered.content(identity(), 0, 100), digest_);
}

TEST_F(IdentityTableTest, DigestsReadSoonAfterAChangeAreNotTrusted) {
  for (const auto& [readAfter, trusted] : {std::pair(-5 * kSecond, false),
                                           {int64_t{0}, false},
                                           {kSecond, false},
                                           {2 * kSecond - 1, false},
                                           {2 * kSecond, true},
                                           {3 * kSecond, true}}) {
    IdentityTable remembered = table();
    remembered.rememberContent(identity(), 0, 100, digest_, kChanged + readAfter);
    EXPECT_EQ(remembered.content(identity(), 0, 100).has_value(), trusted) << readAfter;
  }
}

TEST_F(IdentityTableTest, ChecksAreRememberedForOneBoot) {
  const BootId boot = {1};
  const FileGeneration file = identity().generation;
  table().rememberChecked(segmentKey(1), file, boot);
  EXPECT_TRUE(table().isChecked(segmentKey(1), file, boot));
  EXPECT_FALSE(table().isChecked(segmentKey(2), file, boot));
  EXPECT_FALSE(table().isChecked(segmentKey(1), file, BootId{2}));
  table().rememberChecked(segmentKey(1), file, BootId{});
  EXPECT_FALSE(table().isChecked(segmentKey(1), file, BootId{}));
}

TEST_F(IdentityTableTest, ItIsKnownHowFarEachCheckHasCome) {
  const base::Sha256Digest ids[] = {segmentKey(1).bytes, segmentKey(2).bytes, segmentKey(3).bytes};
  EXPECT_EQ(table().checkedBlocks(ids), std::vector<uint64_t>({0, 0, 0}));
  const CheckedBlocks found[] = {{ids[0], 4, true}, {ids[2], 7, false}};
  table().rememberCheckedBlocks(found);
  EXPECT_EQ(table().checkedBlocks(ids), std::vector<uint64_t>({UINT64_MAX, 0, 7}));
  const CheckedBlocks later[] = {{ids[2], 9, true}, {ids[1], 1, false}};
  table().rememberCheckedBlocks(later);
  EXPECT_EQ(table().checkedBlocks(ids), std::vector<uint64_t>({UINT64_MAX, 1, UINT64_MAX}));
}

#ifdef HEARTH_TEST_HOOKS
TEST_F(IdentityTableTest, KilledWhileItWritesItKnowsAllOfItOrNothing) {
  std::vector<base::Sha256Digest> ids;
  std::vector<CheckedBlocks> found;
  for (uint64_t i = 1; i <= 200; ++i) {
    ids.push_back(segmentKey(i).bytes);
    found.push_back({ids.back(), 1, true});
  }
  for (const auto& [point, isThere] :
       {std::pair("identity.before_commit", false), {"identity.after_commit", true}}) {
    SCOPED_TRACE(point);
    fs::remove(database());
    const auto work = [&] {
      table().rememberCheckedBlocks(found);
      return 0;
    };
    EXPECT_TRUE(wasKilled(endOfCrashing(point, work)));
    EXPECT_EQ(table().checkedBlocks(ids),
              std::vector<uint64_t>(ids.size(), isThere ? UINT64_MAX : 0));
    table().rememberCheckedBlocks(found);
    EXPECT_EQ(table().checkedBlocks(ids), std::vector<uint64_t>(ids.size(), UINT64_MAX));
  }
}
#endif

TEST_F(IdentityTableTest, ADamagedFileNeverAnswersWrongly) {
  {
    IdentityTable remembered = table();
    for (uint64_t i = 1; i < 60; ++i)
      remembered.rememberContent(identity(i), 0, 100, segmentKey(i).bytes, kChanged + 10 * kSecond);
  }
  const std::vector<uint8_t> whole = readFile(database());
  int forgotten = 0;
  for (size_t position = 0; position < whole.size(); position += 61) {
    std::vector<uint8_t> bytes = whole;
    bytes[position] ^= static_cast<uint8_t>(1u << (position % 8));
    writeFile(database(), bytes);
    loseLatest();
    IdentityTable damaged = table();
    for (uint64_t i = 1; i < 60; i += 4) {
      const auto digest = damaged.content(identity(i), 0, 100);
      if (digest)
        EXPECT_EQ(*digest, segmentKey(i).bytes) << position;
      else
        ++forgotten;
    }
    // The table still works.
    damaged.rememberContent(identity(1), 0, 100, digest_, kChanged + 10 * kSecond);
    loseLatest();
    const auto again = table().content(identity(1), 0, 100);
    EXPECT_TRUE(!again || *again == digest_ || *again == segmentKey(1).bytes) << position;
  }
  EXPECT_GT(forgotten, 0);
  for (const size_t size : {0ul, 1ul, 100ul, 4096ul, whole.size() - 1}) {
    writeFile(database(), std::span(whole).first(size));
    table().rememberContent(identity(1), 0, 100, digest_, kChanged + 10 * kSecond);
    loseLatest();
    EXPECT_EQ(table().content(identity(1), 0, 100), digest_) << size;
  }
  writeFile(database(), payload(1, 50'000));
  loseLatest();
  EXPECT_FALSE(table().content(identity(1), 0, 100));
  table().rememberContent(identity(1), 0, 100, digest_, kChanged + 10 * kSecond);
  loseLatest();
  EXPECT_EQ(table().content(identity(1), 0, 100), digest_);
}

TEST_F(IdentityTableTest, ForgetsOldEntries) {
  IdentityTable remembered = table();
  remembered.rememberContent(identity(), 0, 100, digest_, kChanged + 10 * kSecond);
  remembered.rememberChecked(segmentKey(1), identity().generation, BootId{1});
  remembered.forgetOlderThan(24 * 3600);
  EXPECT_FALSE(remembered.content(identity(), 0, 100));
  EXPECT_TRUE(remembered.isChecked(segmentKey(1), identity().generation, BootId{1}));
}

TEST_F(IdentityTableTest, AnImagesFilesAreKnownForOneMounting) {
  FileIdentity file = identity();
  file.proof = ChangeProof::kMounting;
  file.scope = segmentKey(1).bytes;
  FileIdentity update = file;
  update.scope = segmentKey(2).bytes;
  table().rememberContent(file, 0, 100, digest_, kChanged + 10 * kSecond);
  EXPECT_EQ(table().content(file, 0, 100), digest_);
  EXPECT_FALSE(table().content(update, 0, 100));
  loseLatest();
  EXPECT_FALSE(table().content(update, 0, 100));
  // The check of a segment in the last image does not count for the new image either.
  FileGeneration segment = identity().generation;
  table().rememberChecked(segmentKey(1), segment, BootId{1});
  segment.mounting = 7;
  EXPECT_FALSE(table().isChecked(segmentKey(1), segment, BootId{1}));
}

TEST_F(IdentityTableTest, FilesWithoutProofAreNeverKnown) {
  for (const ChangeProof proof : {ChangeProof::kNone, ChangeProof::kSeal}) {
    FileIdentity file = identity();
    file.proof = proof;
    table().rememberContent(file, 0, 100, digest_, kChanged + 10 * kSecond);
    EXPECT_FALSE(table().content(file, 0, 100));
  }
  // A server's clock differs from ours.
  FileIdentity file = identity();
  file.proof = ChangeProof::kServer;
  table().rememberContent(file, 0, 100, digest_, kChanged + 119 * kSecond);
  EXPECT_FALSE(table().content(file, 0, 100));
  table().rememberContent(file, 0, 100, digest_, kChanged + 120 * kSecond);
  EXPECT_TRUE(table().content(file, 0, 100));
}

TEST_F(IdentityTableTest, AClockThatGoesBackwardsMakesNothingUnchangedNorEverlasting) {
  // Files that were changed after they were read, by up to the largest difference that fits.
  for (const auto& [changed, readAt] : {std::pair(kChanged, kChanged - kSecond),
                                        {INT64_MAX, INT64_MIN},
                                        {INT64_MAX, kChanged},
                                        {kChanged, INT64_MIN}}) {
    FileIdentity file = identity();
    file.generation.changed = file.generation.modified = changed;
    IdentityTable remembered = table();
    remembered.rememberContent(file, 0, 100, digest_, readAt);
    EXPECT_FALSE(remembered.content(file, 0, 100)) << changed << ' ' << readAt;
  }
  // An entry of the year 2100, found after the clock was corrected.
  IdentityTable remembered = table();
  remembered.rememberContent(identity(7), 0, 100, digest_, 4'100'000'000 * kSecond);
  remembered.rememberContent(identity(8), 0, 100, digest_, INT64_MAX);
  EXPECT_TRUE(remembered.content(identity(7), 0, 100));
  remembered.forgetOlderThan(int64_t{100} * 365 * 24 * 3600);
  EXPECT_FALSE(remembered.content(identity(7), 0, 100));
  EXPECT_FALSE(remembered.content(identity(8), 0, 100));
}

TEST_F(IdentityTableTest, ALockedFileAnswersNothingAndStays) {
  table().rememberContent(identity(), 0, 100, digest_, kChanged + 10 * kSecond);
  loseLatest();
  {
    const LockHolder holder(database());
    IdentityTable locked = table();
    EXPECT_FALSE(locked.content(identity(), 0, 100));
    locked.rememberContent(identity(2), 0, 100, digest_, kChanged + 10 * kSecond);
    locked.forgetOlderThan(0);
    EXPECT_FALSE(locked.isChecked(segmentKey(1), identity().generation, BootId{1}));
  }
  EXPECT_EQ(table().content(identity(), 0, 100), digest_) << "Nothing was taken for damage.";
}

TEST(FileIdentity, ChangesWithEveryWriteRenameAndCopy) {
  TempFolder folder;
  const fs::path path = folder.path() / "file";
  const auto now = [&] {
    return FileIdentity::of(base::Descriptor::open(path, O_RDONLY)->get()).value();
  };
  writeFile(path, payload(1, 100));
  const FileIdentity first = now();
  EXPECT_EQ(first, now());
  // The clock of a file system may stand still for some milliseconds.
  const auto waitForClock = [&] {
    const fs::path probe = folder.path() / "probe";
    struct stat status;
    do {
      ::usleep(1000);
      writeFile(probe, {});
      ::stat(probe.c_str(), &status);
    } while (FileGeneration::of(status).changed <= now().generation.changed);
  };
  waitForClock();
  writeFile(path, payload(2, 100));
  const FileIdentity second = now();
  EXPECT_NE(first, second);
  // A file written by `cp -p`: same size and time of modification.
  waitForClock();
  const timespec times[2] = {{.tv_sec = second.generation.modified / kSecond,
                              .tv_nsec = second.generation.modified % kSecond},
                             {.tv_sec = second.generation.modified / kSecond,
                              .tv_nsec = second.generation.modified % kSecond}};
  writeFile(path, payload(3, 100));
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  EXPECT_EQ(now().generation.modified, second.generation.modified);
  EXPECT_NE(now(), second);
}

// SQLite allocates memory under a lock of the whole process, even when it closes a database.
TEST_F(IdentityTableTest, AForkedChildIsNotHeldUpByDatabasesThatItsParentCloses) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  table().rememberContent(identity(), 0, 100, digest_, kChanged + 10 * kSecond);
  loseLatest();
  std::atomic<bool> isOver = false;
  std::array<std::thread, 2> threads;
  for (std::thread& thread : threads)
    thread = std::thread([&] {
      while (!isOver) EXPECT_TRUE(table(false).content(identity(), 0, 100));
    });
  for (int i = 0; i < 400; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      ::_exit(table(false).content(identity(), 0, 100) ? 0 : 1);
    }
    if (waitForChild(child) == 0) continue;
    ADD_FAILURE() << "child " << i;
    break;
  }
  isOver = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hearth::cache
