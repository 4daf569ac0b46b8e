// SPDX-License-Identifier: Apache-2.0
#include "cache/folder/weight_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/descriptor.h"
#include "cache/identity/content_hash.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {
namespace {

TEST_F(StoreTest, FindsWhatWasPublishedInThisProcessAndTheNext) {
  for (const size_t size : {1ul, 64ul, 4096ul, 1000003ul, 3ul << 20, (4ul << 20) + 5}) {
    const SegmentKey key = segmentKey(size);
    const std::vector<uint8_t> bytes = payload(size, size);
    {
      const auto store = open();
      EXPECT_EQ(store->find(key).reason, StoreReason::kAbsent);
      const auto segment = store->publish(key, bytes);
      ASSERT_TRUE(segment) << segment.error().message;
      EXPECT_TRUE(equal((*segment)->bytes(), bytes));
      store->settle();
    }
    const auto store = open();
    const FoundSegment found = store->find(key);
    ASSERT_TRUE(found);
    EXPECT_TRUE(equal(found.segment->bytes(), bytes));
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(found.segment->data()) % (size < (2u << 20) ? 4096 : 2u << 20),
        0u);
    // The bytes after the payload are readable, too; they are those of the file.
    const std::vector<uint8_t> file = readFile(segmentPath(key));
    EXPECT_TRUE(equal({found.segment->data() + size, memory::Mapping::kReadableBehind},
                      std::span(file).subspan(size, memory::Mapping::kReadableBehind)));
    EXPECT_TRUE(std::filesystem::exists(segmentPath(key)));
    EXPECT_FALSE(std::filesystem::exists(segmentPath(key, false)));
  }
}

TEST_F(StoreTest, OneObjectForEachProcessAndStore) {
  const auto store = open();
  EXPECT_EQ(store, open());
  StoreOptions strict = options();
  strict.mode = StoreMode::kStrict;
  EXPECT_NE(store, open(strict));
}

// Kernels read a little beyond the payload, even if it ends with a page.
TEST_F(StoreTest, BytesBehindASegmentCanBeReadEvenIfTheyAreCutOff) {
  for (const size_t size : {4096ul, 4000ul, 2ul << 20}) {
    const SegmentKey key = segmentKey(size);
    ASSERT_TRUE(open()->publish(key, payload(size, size)));
    const auto store = open();
    const FoundSegment found = store->find(key);
    ASSERT_TRUE(found);
    store->settle();
    const auto path = segmentPath(key);
    std::filesystem::permissions(path, std::filesystem::perms(0600));
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(size)), 0);
    const volatile uint8_t* const end = found.segment->data() + size;
    for (size_t i = 0; i < memory::Mapping::kReadableBehind; ++i) EXPECT_EQ(end[i], 0);
    EXPECT_TRUE(equal(found.segment->bytes(), payload(size, size)));
  }
}

TEST_F(StoreTest, OneMappingForAllUsersInAProcess) {
  const auto store = open();
  const auto segment = store->publish(segmentKey(1), payload(1, 5000));
  ASSERT_TRUE(segment);
  EXPECT_EQ(store->find(segmentKey(1)).segment, *segment);
  EXPECT_EQ(store->publish(segmentKey(1), payload(1, 5000)).value(), *segment);
  EXPECT_EQ(store->counters().segmentsWritten, 1u);
}

TEST_F(StoreTest, NothingOfTheStoreIsOpenToOthers) {
  const auto store = open();
  ASSERT_TRUE(store->publish(segmentKey(1), payload(1, 100)));
  ASSERT_TRUE(store->publishPlan(planKey(1), payload(2, 100), std::vector{segmentKey(1)}));
  store->settle();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root())) {
    struct stat status;
    ASSERT_EQ(::lstat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 077, 0u) << entry.path();
    // Files that may be mapped are read-only.
    const std::string name = entry.path().extension().string();
    if (name == ".seg" || name == ".plan") {
      EXPECT_EQ(status.st_mode & 0777, 0400u) << entry.path();
    }
  }
}

TEST_F(StoreTest, PlansKeepTheirBytesAndSegments) {
  const std::vector<SegmentKey> segments = {segmentKey(1), segmentKey(2)};
  const std::vector<uint8_t> bytes = payload(3, 12345);
  EXPECT_EQ(open()->findPlan(planKey(1)).error().reason, StoreReason::kAbsent);
  ASSERT_TRUE(open()->publishPlan(planKey(1), bytes, segments));
  const auto plan = open()->findPlan(planKey(1));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(equal((*plan)->bytes(), bytes));
  EXPECT_TRUE(std::ranges::equal((*plan)->segments(), segments));
  ASSERT_TRUE(open()->publishPlan(planKey(1), {}, {}));
  EXPECT_TRUE(open()->findPlan(planKey(1)).value()->bytes().empty());
}

TEST_F(StoreTest, PublishAsyncGivesTheMappedSegmentAndLaysItOverTheSource) {
  const auto store = open();
  const size_t size = (size_t{2} << 20) + 100;
  const std::vector<uint8_t> bytes = payload(7, size);
  auto memory = std::make_shared<memory::Mapping>(memory::Mapping::anonymous(size).value());
  std::ranges::copy(bytes, memory->data());
  std::atomic<bool> laidOver = false;
  BuildTicket ticket = store->acquire(segmentKey(7));
  ASSERT_EQ(ticket.role(), BuildTicket::Role::kBuild);
  store->publishAsync({.key = segmentKey(7),
                       .payload = {memory->data(), size},
                       .owner = memory,
                       .ticket = std::move(ticket),
                       .done = [&](StoreResult<SegmentRef> result) {
                         laidOver = result && (*result)->mapOver(memory->data());
                       }});
  store->flush();
  EXPECT_TRUE(laidOver);
  EXPECT_TRUE(equal({memory->data(), size}, bytes));
  EXPECT_EQ(store->acquire(segmentKey(7)).role(), BuildTicket::Role::kFound);
}

// Publishes payloads that are copied to the store before they are hashed.
class CopiedFirstTest : public StoreTest {
 protected:
  struct Published {
    std::shared_ptr<memory::Mapping> memory;
    std::vector<uint8_t> bytes;
    const uint8_t* copy = nullptr;  // the mapping that was offered
    std::optional<StoreResult<SegmentRef>> result;
  };

  static std::shared_ptr<Published> publish(WeightStore& store, uint64_t number, size_t size) {
    const auto published = std::make_shared<Published>();
    published->bytes = payload(number, size);
    published->memory = std::make_shared<memory::Mapping>(memory::Mapping::anonymous(size).value());
    std::ranges::copy(published->bytes, published->memory->data());
    store.publishAsync({.payload = {published->memory->data(), size},
                        .owner = published->memory,
                        .copied =
                            [published](const memory::Mapping& copy) {
                              published->copy = copy.data();
                              EXPECT_TRUE(layOver(copy, published->memory->data()));
                            },
                        .done =
                            [published](StoreResult<SegmentRef> result) {
                              published->result = std::move(result);
                            }});
    return published;
  }

  size_t temporaries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(root() / "tmp"),
                                             std::filesystem::directory_iterator()));
  }
};

TEST_F(CopiedFirstTest, TheMappingOfTheFileIsOfferedBeforeItHasAName) {
  const auto store = open();
  // More bytes than may wait, so the calling thread copies them.
  const auto large = publish(*store, 1, (size_t{20} << 20) + 5);
  EXPECT_NE(large->copy, nullptr);
  EXPECT_EQ(temporaries(), 1u);
  EXPECT_FALSE(large->result);
  const auto small = publish(*store, 2, 100'000);
  bool areDone = false;
  store->afterPublishing([&] { areDone = large->result && small->result; });
  store->flush();
  EXPECT_TRUE(areDone);
  EXPECT_EQ(temporaries(), 0u);
  for (const auto& published : {large, small}) {
    ASSERT_TRUE(*published->result) << published->result->error().message;
    const SegmentRef segment = **published->result;
    EXPECT_EQ(segment->key(), contentSegmentKey(published->bytes));
    EXPECT_EQ(segment->data(), published->copy);
    EXPECT_TRUE(equal(segment->bytes(), published->bytes));
    EXPECT_TRUE(equal({published->memory->data(), published->bytes.size()}, published->bytes));
    EXPECT_EQ(store->find(segment->key()).segment, segment);
  }
  store->settle();
  EXPECT_EQ(store->verifyAll({})->wrongSegments, 0u);
}

TEST_F(CopiedFirstTest, EqualBytesAreOneSegment) {
  const auto store = open();
  const auto first = publish(*store, 1, 3u << 20);
  const auto second = publish(*store, 1, 3u << 20);
  store->flush();
  ASSERT_TRUE(*first->result && *second->result);
  EXPECT_EQ(**first->result, **second->result);
  EXPECT_EQ(store->counters().segmentsWritten, 1u);
  EXPECT_EQ(temporaries(), 0u);
}

TEST_F(CopiedFirstTest, ClosingTheStoreFinishesThem) {
  const auto published = publish(*open(), 1, 3u << 20);
  ASSERT_TRUE(published->result && *published->result);
  EXPECT_TRUE(open()->find(contentSegmentKey(published->bytes)));
}

TEST_F(CopiedFirstTest, ManyDoNotHoldOpenFilesUntilTheEnd) {
  const auto store = open();
  std::vector<std::shared_ptr<Published>> all;
  for (uint64_t i = 0; i < 200; ++i) all.push_back(publish(*store, i, 70'000));
  // The first segments are published, although more could follow.
  while (store->counters().segmentsWritten < 100)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  store->flush();
  for (const auto& published : all) EXPECT_TRUE(published->result && *published->result);
  EXPECT_EQ(store->counters().segmentsWritten, 200u);
}

TEST_F(CopiedFirstTest, AStoreThatIsDeletedMeanwhileGetsThemAllTheSame) {
  const auto store = open();
  const auto published = publish(*store, 1, size_t{20} << 20);
  ASSERT_NE(published->copy, nullptr);
  removeFolder(root());
  store->flush();
  ASSERT_TRUE(published->result && *published->result) << published->result->error().message;
  EXPECT_TRUE(equal((**published->result)->bytes(), published->bytes));
  EXPECT_TRUE(std::filesystem::exists(segmentPath(contentSegmentKey(published->bytes), false)));
}

TEST_F(StoreTest, OffAndReadOnlyWriteNothing) {
  StoreOptions off = options();
  off.mode = StoreMode::kOff;
  EXPECT_EQ(WeightStore::open(off).error().reason, StoreReason::kOff);
  StoreOptions readOnly = options();
  readOnly.mode = StoreMode::kReadOnly;
  EXPECT_EQ(WeightStore::open(readOnly).error().reason, StoreReason::kGone);
  EXPECT_FALSE(std::filesystem::exists(root()));
  ASSERT_TRUE(open()->publish(segmentKey(1), payload(1, 100)));
  const auto store = open(readOnly);
  EXPECT_TRUE(store->find(segmentKey(1)));
  EXPECT_EQ(store->publish(segmentKey(2), payload(2, 100)).error().reason, StoreReason::kReadOnly);
  EXPECT_EQ(store->acquire(segmentKey(2)).role(), BuildTicket::Role::kAlone);
  EXPECT_EQ(store->writability().reason, StoreReason::kReadOnly);
}

TEST_F(StoreTest, SystemStoresAreSearchedFirstAndNeverWritten) {
  StoreOptions system = options();
  system.path = (folder_.path() / "system").string();
  ASSERT_TRUE(open(system)->publish(segmentKey(1), payload(1, 100)));
  ASSERT_TRUE(open(system)->publishPlan(planKey(1), payload(3, 10), {}));
  open(system)->settle();
  StoreOptions both = options();
  both.systemStores = {system.path, (folder_.path() / "missing").string()};
  const auto store = open(both);
  EXPECT_TRUE(store->find(segmentKey(1)));
  EXPECT_TRUE(store->findPlan(planKey(1)));
  ASSERT_TRUE(store->publish(segmentKey(2), payload(2, 100)));
  store->settle();
  EXPECT_EQ(open(system)->find(segmentKey(2)).reason, StoreReason::kAbsent);
  both.path.clear();
  EXPECT_TRUE(open(both)->find(segmentKey(1)));
  EXPECT_EQ(open(both)->publish(segmentKey(2), payload(2, 9)).error().reason, StoreReason::kNoHome);
}

TEST_F(StoreTest, ContentHashFollowsTheFile) {
  const auto store = open();
  const std::filesystem::path path = folder_.path() / "model";
  writeFile(path, payload(1, 3 << 20));
  const auto hash = [&] {
    const auto file = base::Descriptor::open(path, O_RDONLY);
    return store->contentHash(file->get(), 0, file->size().value()).value();
  };
  const auto first = hash();
  EXPECT_EQ(first, hash());
  std::vector<uint8_t> bytes = payload(1, 3 << 20);
  bytes[2'000'000] ^= 1;
  writeFile(path, bytes);
  const auto second = hash();
  EXPECT_NE(first, second);
  const auto file = base::Descriptor::open(path, O_RDONLY);
  EXPECT_NE(store->contentHash(file->get(), 1, 100).value(),
            store->contentHash(file->get(), 2, 100).value());
  EXPECT_EQ(store->contentHash(file->get(), 3 << 20, 1).error().code(), ErrorCode::kBadData);
}

TEST_F(StoreTest, AContentIsKnownByItsTagsWhateverTheFile) {
  std::vector<uint8_t> bytes = payload(1, 3 << 20);
  const auto source = [&](const base::Descriptor& file) {
    return ContentSource::of(file.get(), 0, bytes.size());
  };
  const auto fileOf = [&](const char* name) {
    writeFile(folder_.path() / name, bytes);
    return base::Descriptor::open(folder_.path() / name, O_RDONLY).value();
  };
  const base::Descriptor first = fileOf("first");
  EXPECT_FALSE(open()->contentTags(source(first), 1).value()) << "Nothing has a name yet.";
  const base::Sha256Digest digest = open()->contentHash(first.get(), 0, bytes.size()).value();
  // A new process, and a copy.
  const auto store = open();
  const base::Descriptor copy = fileOf("copy");
  const std::optional<ContentTags> tags = store->contentTags(source(copy), 2).value();
  ASSERT_TRUE(tags);
  EXPECT_EQ(store->namedContentHash(source(copy), *tags), digest);
  EXPECT_EQ(store->counters().bytesHashed, bytes.size());
  bytes[2'000'000] ^= 1;
  const base::Descriptor other = fileOf("changed");
  const auto changed = store->contentTags(source(other), 2).value();
  ASSERT_TRUE(changed);
  EXPECT_FALSE(store->namedContentHash(source(other), *changed));
  EXPECT_EQ(changed->blocks.front(), tags->blocks.front());
  // Another store has another key.
  StoreOptions elsewhere = options();
  elsewhere.path = folder_.path() / "other";
  (void)open(elsewhere)->contentHash(copy.get(), 0, bytes.size());
  const auto foreign = open(elsewhere)->contentTags(source(copy), 1).value();
  ASSERT_TRUE(foreign);
  EXPECT_NE(foreign->blocks, tags->blocks);
}

}  // namespace
}  // namespace hearth::cache
