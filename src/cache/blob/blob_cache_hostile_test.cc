// SPDX-License-Identifier: Apache-2.0
// A file that is damaged, planted or owned by another user counts as an empty cache and does no
// other harm.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/sha256.h"
#include "cache/testing/blob_cache_test_util.h"
#include "cache/testing/planted_files.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

class BlobCacheHostileTest : public BlobCacheTest {
 protected:
  void prepare() {
    const auto cache = open();
    ASSERT_TRUE(cache->removeAll());
    for (uint64_t i = 1; i <= 3; ++i) cache->set(keyOf(i), valueOf(i));
    ASSERT_TRUE(cache->save());
  }
  void plant(std::span<const uint8_t> bytes) {
    removeFolder(file());
    writeFile(file(), bytes);
    fs::permissions(file(), fs::perms(0600));
  }
  void expectEmptyAndReplaceable() {
    const auto cache = open();
    EXPECT_FALSE(cache->get(keyOf(1)));
    EXPECT_EQ(cache->count(), 0u);
    cache->set(keyOf(9), valueOf(9));
    ASSERT_TRUE(cache->save());
    const auto next = open();
    EXPECT_TRUE(has(*next, 9));
    EXPECT_EQ(next->count(), 1u);
  }
  // Sets the digest that fits the bytes.
  static void sign(std::vector<uint8_t>* file) {
    base::Sha256 hash;
    hash.update(std::span(*file).first(32));
    hash.update(std::span(*file).subspan(64));
    const base::Sha256Digest digest = hash.finish();
    std::memcpy(file->data() + 32, digest.data(), digest.size());
  }
  static void put(std::vector<uint8_t>* file, size_t offset, uint64_t value, size_t size) {
    std::memcpy(file->data() + offset, &value, size);
  }
};

TEST_F(BlobCacheHostileTest, AFileOfAnyOtherLengthIsAnEmptyCache) {
  prepare();
  const std::vector<uint8_t> whole = readFile(file());
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto parsed = parseBlobCacheFile(std::span(whole).first(size));
    ASSERT_FALSE(parsed) << size;
    EXPECT_EQ(parsed.error().reason, StoreReason::kCorrupt);
  }
  for (const size_t size : {size_t{0}, size_t{63}, size_t{64}, whole.size() - 1, whole.size() + 1,
                            whole.size() + 4096}) {
    std::vector<uint8_t> bytes = whole;
    bytes.resize(size);
    plant(bytes);
    expectEmptyAndReplaceable();
  }
  // A file that consists of the largest possible hole costs no time.
  plant(whole);
  if (::truncate(file().c_str(), off_t{1} << 43) == 0) expectEmptyAndReplaceable();
}

TEST_F(BlobCacheHostileTest, AnyFlippedBitIsFound) {
  prepare();
  const std::vector<uint8_t> whole = readFile(file());
  ASSERT_EQ(parseBlobCacheFile(whole)->size(), 3u);
  for (size_t position = 0; position < whole.size(); ++position)
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<uint8_t> bytes = whole;
      bytes[position] ^= static_cast<uint8_t>(1u << bit);
      EXPECT_FALSE(parseBlobCacheFile(bytes)) << position;
    }
  std::vector<uint8_t> bytes = whole;
  bytes[bytes.size() / 2] ^= 4;
  plant(bytes);
  expectEmptyAndReplaceable();
}

TEST_F(BlobCacheHostileTest, WrongClaimsWithARightDigestAreFound) {
  prepare();
  const std::vector<uint8_t> whole = readFile(file());
  struct Claim {
    size_t offset;
    uint64_t value;
    size_t size;
  };
  // Version, count and size in the head; sizes of the first key and value.
  const Claim claims[] = {
      {8, 0, 4},
      {8, 2, 4},
      {12, 0, 4},
      {12, 2, 4},
      {12, UINT32_MAX, 4},
      {16, 0, 8},
      {16, uint64_t{1} << 60, 8},
      {16, UINT64_MAX, 8},
      {16, whole.size(), 8},
      {64, 0, 4},
      {64, UINT32_MAX, 4},
      {64, whole.size(), 4},
      {68, 0, 4},
      {68, UINT32_MAX, 4},
      {68, whole.size() - 64 - 16, 4},
      {64, 0xFFFFFFFFFFFFFFFFu, 8},
  };
  for (const Claim& claim : claims) {
    std::vector<uint8_t> bytes = whole;
    put(&bytes, claim.offset, claim.value, claim.size);
    sign(&bytes);
    const auto parsed = parseBlobCacheFile(bytes);
    ASSERT_FALSE(parsed) << claim.offset << " " << claim.value;
    EXPECT_EQ(parsed.error().reason, StoreReason::kCorrupt);
  }
  // The same key twice.
  const BlobMap one = {{"key", {payload(1, 5), 7}}};
  std::vector<uint8_t> twice = makeBlobCacheFile(one);
  twice.insert(twice.end(), twice.begin() + 64, twice.end());
  put(&twice, 12, 2, 4);
  put(&twice, 16, twice.size() - 64, 8);
  sign(&twice);
  EXPECT_FALSE(parseBlobCacheFile(twice));
}

TEST_F(BlobCacheHostileTest, EntriesFromTheFutureAreNotKeptForEver) {
  const BlobLimits limits = {.maxBytes = 300};
  prepare();
  plant(makeBlobCacheFile(
      {{"future", {payload(1, 100), INT64_MAX}}, {"past", {payload(2, 100), INT64_MIN}}}));
  const auto cache = open(limits);
  EXPECT_EQ(cache->count(), 2u);
  cache->set(keyOf(1), payload(1, 100));
  cache->set(keyOf(2), payload(2, 100));
  EXPECT_FALSE(cache->get("past"));
  EXPECT_FALSE(cache->get("future"));
  EXPECT_EQ(cache->get(keyOf(1)), payload(1, 100));
}

TEST_F(BlobCacheHostileTest, PlantedFilesAreIgnoredAndReplaced) {
  const fs::path target = folder_.path() / "target";
  std::vector<PlantedFile> plants = plantedFiles();
  plants.push_back({"file of another user", [](const fs::path& path, const fs::path& target) {
                      fs::copy_file(target, path);
                      // Only root can change the owner; others make the file unreadable.
                      if (::chown(path.c_str(), 65534, 65534) != 0)
                        fs::permissions(path, fs::perms(0));
                    }});
  for (const auto& [name, plant] : plants) {
    SCOPED_TRACE(name);
    prepare();
    removeFolder(target);
    fs::rename(file(), target);
    const std::vector<uint8_t> before = readFile(target);
    plant(file(), target);
    const auto verified = open()->verify();
    ASSERT_FALSE(verified);
    EXPECT_EQ(verified.error().reason, StoreReason::kForeign);
    EXPECT_FALSE(fs::exists(fs::symlink_status(file())));
    plant(file(), target);
    expectEmptyAndReplaceable();
    // Nothing is written through a link.
    EXPECT_EQ(readFile(target), before);
  }
}

TEST_F(BlobCacheHostileTest, VerifyRemovesADamagedFileUnlessItIsReadOnly) {
  prepare();
  EXPECT_EQ(open()->verify(), 3u);
  std::vector<uint8_t> bytes = readFile(file());
  bytes[70] ^= 1;
  plant(bytes);
  BlobCache reader(store(StoreFolder::Access::kRead), kName);
  EXPECT_EQ(reader.verify().error().reason, StoreReason::kCorrupt);
  EXPECT_TRUE(fs::exists(file()));
  EXPECT_EQ(open()->verify().error().reason, StoreReason::kCorrupt);
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_EQ(open()->verify(), 0u);
}

TEST_F(BlobCacheHostileTest, AFolderThatVanishesIsAReason) {
  const auto cache = open();
  cache->set(keyOf(1), valueOf(1));
  ASSERT_TRUE(cache->save());
  removeFolder(root());
  EXPECT_FALSE(cache->get(keyOf(1)));
  cache->set(keyOf(2), valueOf(2));
  EXPECT_FALSE(cache->save());
  EXPECT_TRUE(has(*cache, 2));
}

}  // namespace
}  // namespace hearth::cache
