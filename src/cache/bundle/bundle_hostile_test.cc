// SPDX-License-Identifier: Apache-2.0
// Damaged and hostile bundles, and other files in place of a bundle.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "cache/bundle/bundle_file.h"
#include "cache/bundle/bundle_notes.h"
#include "cache/open_store.h"
#include "cache/store/store_facts.h"
#include "cache/testing/bundle_test_util.h"
#include "cache/testing/planted_files.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

using BundleHostileTest = BundleTest;

void sign(std::vector<uint8_t>& head) {
  const base::Sha256Digest digest = base::Sha256::of(std::span(head).first(4064));
  std::memcpy(head.data() + 4064, digest.data(), digest.size());
}

BundleContent smallContent() {
  BundleContent content;
  uint64_t end = 0;
  for (uint64_t i = 1; i <= 2; ++i) {
    const std::vector<uint8_t> bytes = payload(i, 5000);
    SegmentInfo info{
        .key = segmentKey(i), .offset = bundlePayloadOffset(end, 5000), .payloadSize = 5000};
    info.blocks.push_back(base::Sha256::of(bytes));
    end = info.offset + info.payloadSize;
    content.segments.push_back(info);
  }
  content.plan = {.key = planKey(1), .segments = {segmentKey(1)}, .bytes = payload(9, 70)};
  content.facts = {{"a fact", {payload(8, 50), 1'700'000'000}}};
  return content;
}

TEST(BundleFile, HeadAndIndexSayWhatWasWritten) {
  const BundleContent content = smallContent();
  BundleHead head{.writtenIn = {5}};
  const auto index = makeBundleIndex(content, content.segments[1].offset + 5000, head);
  ASSERT_TRUE(index);
  const auto parsed = parseBundleHead(makeBundleHead(head), head.fileSize);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->identity(), head.identity());
  const auto result = parseBundleIndex(*index, *parsed);
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->segments.size(), 2u);
  EXPECT_EQ(result->segments[1].key, segmentKey(2));
  EXPECT_EQ(result->segments[1].offset, content.segments[1].offset);
  EXPECT_EQ(result->segments[1].blocks, content.segments[1].blocks);
  EXPECT_EQ(result->plan.bytes, payload(9, 70));
  EXPECT_EQ(result->facts, content.facts);
}

TEST(BundleFile, SizesOfAnAttackerStayWithinTheFile) {
  const BundleContent content = smallContent();
  BundleHead right;
  ASSERT_TRUE(makeBundleIndex(content, content.segments[1].offset + 5000, right));
  const std::vector<uint8_t> bytes = makeBundleHead(right);
  const uint64_t values[] = {0,          1,          4095,       4096,
                             4097,       1u << 20,   1ull << 32, 1ull << 40,
                             1ull << 60, 1ull << 63, UINT64_MAX, UINT64_MAX - 4095};
  // File size, offset of the index, counts of segments and blocks, sizes and offset of plan, notes
  // and facts.
  for (size_t field = 16; field < 72; field += 8)
    for (const uint64_t value : values) {
      std::vector<uint8_t> head = bytes;
      std::memcpy(head.data() + field, &value, sizeof value);
      if (head == bytes) continue;
      sign(head);
      // If the rounding leaves room, a smaller index contradicts nothing, but its digest differs.
      const auto taken = parseBundleHead(head, right.fileSize);
      EXPECT_TRUE(!taken || (value <= 1 && taken->indexSize() < right.indexSize()))
          << field << " " << value;
    }
  for (const uint64_t size : {uint64_t{0}, right.fileSize - 1, right.fileSize + 1, UINT64_MAX})
    EXPECT_FALSE(parseBundleHead(bytes, size)) << size;
  EXPECT_FALSE(parseBundleHead(std::span(bytes).first(4095), right.fileSize));
  std::vector<uint8_t> padded = bytes;
  padded[2000] = 1;
  sign(padded);
  EXPECT_FALSE(parseBundleHead(padded, right.fileSize));
}

TEST(BundleFile, PlacesOfAnAttackerStayBetweenHeadAndIndex) {
  const BundleContent right = smallContent();
  const uint64_t end = right.segments[1].offset + 5000;
  const auto isTaken = [&](auto change) {
    BundleContent content = right;
    change(content);
    BundleHead head;
    const auto index = makeBundleIndex(content, end, head);
    return index && parseBundleIndex(*index, head).has_value();
  };
  EXPECT_TRUE(isTaken([](BundleContent&) {}));
  for (const uint64_t offset : {uint64_t{0}, uint64_t{100}, uint64_t{8192}, uint64_t{4096} << 20,
                                uint64_t{1} << 63, UINT64_MAX - 4095})
    EXPECT_FALSE(isTaken([&](BundleContent& content) { content.segments[1].offset = offset; }))
        << offset;
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{5000} + (1u << 20), uint64_t{1} << 62, UINT64_MAX})
    EXPECT_FALSE(isTaken([&](BundleContent& content) { content.segments[1].payloadSize = size; }))
        << size;
  EXPECT_FALSE(isTaken([](BundleContent& content) { content.segments[1].key = segmentKey(1); }));
  EXPECT_FALSE(isTaken([](BundleContent& content) { content.segments[1].blocks.emplace_back(); }));
  EXPECT_FALSE(isTaken([](BundleContent& content) { content.segments[1].blocks.clear(); }));
  EXPECT_FALSE(isTaken([](BundleContent& content) { content.plan.segments = {segmentKey(3)}; }));
  const auto isFactTaken = [&](size_t keySize, size_t valueSize, size_t count) {
    return isTaken([&](BundleContent& content) {
      for (size_t i = 0; i < count; ++i)
        content.facts[std::to_string(i) + std::string(keySize - 1, 'k')] = {payload(i, valueSize)};
    });
  };
  EXPECT_TRUE(isFactTaken(256, kFactLimits.maxValueBytes, 1));
  EXPECT_FALSE(isFactTaken(257, 1, 1));
  EXPECT_FALSE(isFactTaken(1, kFactLimits.maxValueBytes + 1, 1));
  EXPECT_TRUE(isFactTaken(1, kFactLimits.maxValueBytes, 7));
  EXPECT_FALSE(isFactTaken(1, kFactLimits.maxValueBytes, 8));
  BundleHead head;
  const std::vector<uint8_t> index = makeBundleIndex(right, end, head).value();
  for (size_t size = 0; size < index.size(); size += 7)
    EXPECT_FALSE(parseBundleIndex(std::span(index).first(size), head)) << size;
}

TEST_F(BundleHostileTest, AnyFlippedBitIsFoundAndNeverUsedInStrictMode) {
  ASSERT_EQ(build(*open()), 0);
  const Fact fact{"a fact", payload(8, 900)};
  open()->remember({&fact, 1});
  const std::vector<uint8_t> whole = readFile(path());
  const auto info = [&] {
    const auto file = base::Descriptor::open(path(), O_RDONLY);
    return readBundleInfo(file->get(), whole.size()).value();
  }();
  ASSERT_EQ(info.content.facts.size(), 1u);
  std::vector<size_t> positions = {0, 7, 8, 20, 100, 2000, 4090};
  for (const SegmentInfo& segment : info.content.segments)
    for (const uint64_t offset : {uint64_t{0}, segment.payloadSize / 2, segment.payloadSize - 1})
      positions.push_back(segment.offset + offset);
  for (uint64_t i = 0; i < info.head.indexSize(); i += 199)
    positions.push_back(info.head.indexOffset + i);
  for (const size_t position : positions) {
    SCOPED_TRACE(position);
    std::vector<uint8_t> bytes = whole;
    bytes[position] ^= static_cast<uint8_t>(1u << (position % 8));
    // Each round has a new file, since a check of the last one may still be running.
    const auto plant = [&] {
      fs::remove(path());
      writeFile(path(), bytes);
      fs::permissions(path(), fs::perms(0600));
    };
    plant();
    {
      // All bytes are right in the end: wrong segments are built again.
      const auto store = open(strict());
      EXPECT_EQ(store->recall(fact.key).value_or(fact.value), fact.value);
      EXPECT_EQ(build(*store), 0);
      EXPECT_GE(store->counters().segmentsCorrupt, 1u);
      EXPECT_GE(store->counters().segmentsWritten, 1u);
    }
    EXPECT_EQ(build(*open(strict())), 0);
    EXPECT_EQ(open(strict())->counters().segmentsWritten, 0u);
    plant();
    const auto store = open();
    if (!store->findPlan(planKey(1))) continue;
    std::vector<SegmentRef> segments;
    for (const SegmentKey& key : keys()) segments.push_back(store->find(key).segment);
    store->settle();
    EXPECT_EQ(store->counters().segmentsCorrupt, 1u);
    // The background check may finish before the search for the segment.
    const auto isWrong = [](const SegmentRef& it) {
      return it == nullptr || it->isCorrupt();
    };
    EXPECT_EQ(std::ranges::count_if(segments, isWrong), 1);
    EXPECT_FALSE(fs::exists(path()));
    for (size_t i = 0; i < segments.size(); ++i)
      if (segments[i] != nullptr) {
        EXPECT_EQ(equal(segments[i]->bytes(), bytesOf(i)), !segments[i]->isCorrupt());
      }
  }
}

// A note that is written past the end of a truncated file would turn the lost pages into zeros that
// can be read.
TEST_F(BundleHostileTest, NotesDoNotMakeACutFileLonger) {
  ASSERT_EQ(build(*open()), 0);
  const auto store = open();
  ASSERT_TRUE(store->find(keys()[0]));
  const Fact fact{"one", payload(7, 32)};
  fs::permissions(path(), fs::perms(0600));
  const uintmax_t whole = fs::file_size(path());
  store->remember({&fact, 1});
  EXPECT_EQ(fs::file_size(path()), whole);
  fs::resize_file(path(), 8192);
  const Fact later{"two", payload(8, 32)};
  store->remember({&later, 1});
  EXPECT_EQ(store->recall(later.key), later.value);  // of this process
  EXPECT_EQ(fs::file_size(path()), 8192u);
}

TEST_F(BundleHostileTest, AFileOfAnyOtherLengthIsReplaced) {
  ASSERT_EQ(build(*open()), 0);
  const std::vector<uint8_t> whole = readFile(path());
  for (const size_t size : {size_t{0}, size_t{2}, size_t{8}, size_t{100}, size_t{4095},
                            size_t{4096}, whole.size() / 2, whole.size() - 1, whole.size() + 1}) {
    SCOPED_TRACE(size);
    std::vector<uint8_t> bytes = whole;
    bytes.resize(size);
    writeFile(path(), bytes);
    EXPECT_EQ(build(*open()), 0);
    EXPECT_EQ(build(*open(strict())), 0);
    EXPECT_EQ(open(strict())->counters().segmentsWritten, 0u);
  }
  // Zeros, as after a power failure. A file that consists of the largest possible hole costs no
  // time.
  writeFile(path(), std::vector<uint8_t>(9000));
  EXPECT_EQ(build(*open()), 0);
  if (::truncate(path().c_str(), off_t{1} << 43) == 0) {
    EXPECT_EQ(build(*open()), 0);
  }
}

TEST_F(BundleHostileTest, FilesThatAreNoBundlesStayUnchanged) {
  const fs::path target = folder_.path() / "target";
  writeFile(target, payload(3, 5000));
  std::vector<PlantedFile> plants = {
      {"another file",
       [](const fs::path& path, const fs::path& target) {
         fs::copy(target, path);
       }},
      {"one byte",
       [](const fs::path& path, const fs::path&) {
         writeFile(path, payload(1, 1));
       }},
      {"empty file that others may write",
       [](const fs::path& path, const fs::path&) {
         writeFile(path, {});
         fs::permissions(path, fs::perms(0622));
       }},
  };
  const std::vector<PlantedFile> files = plantedFiles();
  plants.insert(plants.end(), files.begin(), files.end());
  for (const auto& [name, plant] : plants) {
    SCOPED_TRACE(name);
    plant(path(), target);
    struct stat before;
    ASSERT_EQ(::lstat(path().c_str(), &before), 0);
    const auto store = openSegmentStore(options());
    EXPECT_EQ(store->planCapacity(), PlanCapacity::kNone);
    EXPECT_EQ(store->writability().reason, StoreReason::kForeign);
    struct stat after;
    ASSERT_EQ(::lstat(path().c_str(), &after), 0);
    EXPECT_EQ(after.st_ino, before.st_ino);
    EXPECT_EQ(after.st_size, before.st_size);
    EXPECT_EQ(readFile(target), payload(3, 5000));
    removeFolder(path());
  }
  // The link is planted after the store was opened.
  const auto store = open();
  EXPECT_TRUE(publish(*store, keys()[0], bytesOf(0)));
  fs::create_symlink(target, path());
  EXPECT_EQ(store->publishPlan(planKey(1), {}, {}).error().reason, StoreReason::kForeign);
  EXPECT_EQ(readFile(target), payload(3, 5000));
}

TEST_F(BundleHostileTest, AnyFileInPlaceOfTheNewBundleDoesNoHarm) {
  const fs::path target = folder_.path() / "target";
  writeFile(target, payload(3, 5000));
  fs::create_symlink(target, building());
  EXPECT_EQ(open()->acquire(keys()[0]).role(), BuildTicket::Role::kAlone);
  EXPECT_EQ(open()->writability().reason, StoreReason::kNone);
  EXPECT_EQ(publish(*open(), keys()[0], bytesOf(0)).error().reason, StoreReason::kForeign);
  EXPECT_EQ(readFile(target), payload(3, 5000));
  fs::remove(building());
  ::mkfifo(building().c_str(), 0600);
  EXPECT_EQ(publish(*open(), keys()[0], bytesOf(0)).error().reason, StoreReason::kForeign);
  fs::remove(building());
  // A leftover of a killed process.
  writeFile(building(), payload(4, 12345));
  fs::permissions(building(), fs::perms(0600));
  EXPECT_EQ(build(*open()), 0);
  EXPECT_FALSE(fs::exists(building()));
}

TEST_F(BundleHostileTest, DamagedNotesOnlyForget) {
  BundleNotes notes;
  const fs::path file = folder_.path() / "notes";
  writeFile(file, std::vector<uint8_t>(100 + BundleNotes::kBytes));
  const auto key = [](uint64_t i) {
    return segmentKey(i).bytes;
  };
  notes.attach(base::Descriptor::open(file, O_RDWR).value(), 100);
  // More notes than there is room for: the oldest are overwritten.
  for (uint64_t i = 0; i < BundleNotes::kCount + 5; ++i) notes.add(key(i));
  const auto readBack = [&] {
    auto again = std::make_unique<BundleNotes>();
    again->read(base::Descriptor::open(file, O_RDONLY)->get(), 100, {});
    return again;
  };
  EXPECT_FALSE(readBack()->has(key(0)));
  EXPECT_TRUE(readBack()->has(key(BundleNotes::kCount + 4)));
  const std::vector<uint8_t> whole = readFile(file);
  for (size_t i = 0; i < BundleNotes::kCount; ++i) {
    std::vector<uint8_t> bytes = whole;
    bytes[100 + i * BundleNotes::kNoteSize + i] ^= 1;
    writeFile(file, bytes);
    const auto damaged = readBack();
    size_t known = 0;
    for (uint64_t number = 0; number < BundleNotes::kCount + 5; ++number)
      known += damaged->has(key(number));
    EXPECT_EQ(known, BundleNotes::kCount - 1) << i;
  }
  writeFile(file, std::span(whole).first(500));
  EXPECT_FALSE(readBack()->has(key(BundleNotes::kCount + 4)));
}

}  // namespace
}  // namespace hearth::cache
