// SPDX-License-Identifier: Apache-2.0
// Tests the formats of segment and plan files with hostile bytes.
#include <gtest/gtest.h>

#include <cstring>

#include "base/descriptor.h"
#include "cache/identity/content_hash.h"
#include "cache/plan/plan_file.h"
#include "cache/segment/segment_file.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {
namespace {

SegmentInfo infoOf(size_t size) {
  SegmentInfo info{.key = segmentKey(1), .payloadSize = size, .writtenIn = {1, 2, 3}};
  const std::vector<uint8_t> bytes = payload(1, size);
  for (size_t i = 0; i < size; i += kSegmentBlock)
    info.blocks.push_back(
        base::Sha256::of(std::span(bytes).subspan(i, std::min<size_t>(kSegmentBlock, size - i))));
  return info;
}

// Gives a changed tail the right checksum, as an attacker would.
void sign(std::vector<uint8_t>& tail, size_t blocks) {
  const auto signedPart =
      std::span(tail).subspan(tail.size() - 128 - 32 * blocks, 32 * blocks + 96);
  const base::Sha256Digest digest = base::Sha256::of(signedPart);
  std::memcpy(tail.data() + tail.size() - 32, digest.data(), digest.size());
}

TEST(SegmentFile, TheTailSaysWhatWasWritten) {
  for (const size_t size : {1ul, 63ul, 64ul, 1ul << 20, (1ul << 20) + 1, 5ul << 20}) {
    const SegmentInfo info = infoOf(size);
    const std::vector<uint8_t> tail = makeSegmentTail(info);
    const uint64_t fileSize = size + tail.size();
    ASSERT_LE(tail.size(), segmentTailSize(fileSize));
    const auto parsed = parseSegmentTail(tail, fileSize);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->key, info.key);
    EXPECT_EQ(parsed->payloadSize, size);
    EXPECT_EQ(parsed->writtenIn, info.writtenIn);
    EXPECT_EQ(parsed->blocks, info.blocks);
    // The tail takes at most 1 % of the payload's size.
    if (size >= 1 << 20) {
      EXPECT_LT(tail.size(), size / 100);
    }
  }
}

// The digests are those of the memory's earlier content.
TEST(SegmentFile, BytesThatChangeWhileTheyAreWrittenAreRefused) {
  TempFolder folder;
  const base::Descriptor file(
      ::open((folder.path() / "segment").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  std::vector<uint8_t> bytes = payload(1, (2 << 20) + 5);
  const std::vector<base::Sha256Digest> blocks = blockDigests(bytes);
  SegmentPayload written(bytes, blocks);
  written.mayChange = true;
  ASSERT_TRUE(writeSegmentFile(file.get(), segmentKey(1), written, BootId{1}));
  const std::vector<uint8_t> there = readFile(folder.path() / "segment");
  EXPECT_TRUE(equal(std::span(there).first(bytes.size()), bytes));
  bytes[1 << 20] ^= 1;
  const auto refused = writeSegmentFile(file.get(), segmentKey(1), written, BootId{1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, StoreReason::kChanged);
}

TEST(SegmentFile, SizesOfAnAttackerStayWithinTheFile) {
  const std::vector<uint8_t> right = makeSegmentTail(infoOf(4096));
  const uint64_t fileSize = 4096 + right.size();
  const size_t trailer = right.size() - 128;
  const uint64_t values[] = {
      0,          1,          63,         4095,       4097,       1u << 20,       fileSize,
      1ull << 31, 1ull << 32, 1ull << 60, 1ull << 63, UINT64_MAX, UINT64_MAX - 63};
  for (const size_t field : {48ul, 56ul, 64ul}) {  // payload size, offset of the digests, file size
    for (const uint64_t value : values) {
      std::vector<uint8_t> tail = right;
      std::memcpy(tail.data() + trailer + field, &value, sizeof value);
      if (tail == right) continue;
      sign(tail, 1);
      EXPECT_FALSE(parseSegmentTail(tail, fileSize)) << field << " " << value;
    }
  }
  std::vector<uint8_t> tail = right;
  sign(tail, 1);
  EXPECT_TRUE(parseSegmentTail(tail, fileSize));
  EXPECT_FALSE(parseSegmentTail(tail, fileSize + 1));
  EXPECT_FALSE(parseSegmentTail(tail, UINT64_MAX));
  EXPECT_FALSE(parseSegmentTail(std::span(tail).last(128), fileSize));
  EXPECT_FALSE(parseSegmentTail({}, 0));
}

TEST(PlanFile, SizesOfAnAttackerStayWithinTheFile) {
  const std::vector<SegmentKey> segments = {segmentKey(1), segmentKey(2)};
  const auto right =
      makePlanFile(
          {.key = planKey(1), .fingerprint = {7}, .segments = segments, .bytes = payload(1, 333)})
          .value();
  const auto parsed = parsePlanFile(right);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->key, planKey(1));
  EXPECT_EQ(parsed->fingerprint, BuildFingerprint{7});
  EXPECT_EQ(parsed->segments, segments);
  EXPECT_EQ(parsed->bytes, payload(1, 333));
  const auto isTaken = [&](size_t field, auto value) {
    std::vector<uint8_t> file = right;
    std::memcpy(file.data() + field, &value, sizeof value);
    const base::Sha256Digest digest = base::Sha256::of(std::span(file).first(file.size() - 32));
    std::memcpy(file.data() + file.size() - 32, digest.data(), digest.size());
    return parsePlanFile(file).has_value();
  };
  for (const uint32_t count : {0u, 1u, 3u, 1u << 27, UINT32_MAX})
    EXPECT_FALSE(isTaken(12, count)) << count;
  for (const uint64_t size : {uint64_t{0}, uint64_t{334}, uint64_t{1} << 60, UINT64_MAX}) {
    EXPECT_FALSE(isTaken(80, size)) << size;
    EXPECT_FALSE(isTaken(88, size)) << size;
    EXPECT_EQ(isTaken(96, size), size == 0) << size;
  }
  for (size_t size = 0; size < right.size(); ++size)
    EXPECT_FALSE(parsePlanFile(std::span(right).first(size))) << size;
}

TEST(PlanFile, APlanBeyondTheLimitIsRefused) {
  const PlanContent plan{.key = planKey(1), .bytes = std::vector<uint8_t>(kMaxPlanFile)};
  EXPECT_EQ(makePlanFile(plan).error().reason, StoreReason::kBadRequest);
}

TEST(PlanDescription, KeepsItsTextsAndNoMore) {
  const PlanDescription description{
      .model = "a.tflite", .device = "hearth-cpu", .created = 1'700'000'000, .details = "x=1\n"};
  EXPECT_TRUE(PlanDescription{}.encoded().empty());
  EXPECT_EQ(PlanDescription::parse({}).value(), PlanDescription{});
  const std::vector<uint8_t> bytes = description.encoded();
  EXPECT_EQ(PlanDescription::parse(bytes).value(), description);
  for (size_t size = 1; size < bytes.size(); ++size)
    EXPECT_FALSE(PlanDescription::parse(std::span(bytes).first(size))) << size;
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(PlanDescription::parse(longer));
  for (const size_t length : {8ul, 20ul}) {  // the sizes of the first two texts
    std::vector<uint8_t> damaged = bytes;
    std::memset(damaged.data() + length, 0xFF, 4);
    EXPECT_FALSE(PlanDescription::parse(damaged)) << length;
  }
  PlanDescription large{.details = std::string(PlanDescription::kMaxText + 1, 'x')};
  EXPECT_EQ(PlanDescription::parse(large.encoded())->details.size(), PlanDescription::kMaxText);
  const auto file =
      makePlanFile({.key = planKey(1), .description = description, .bytes = payload(1, 9)});
  ASSERT_TRUE(file);
  const auto plan = parsePlanFile(*file);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->description, description);
  EXPECT_EQ(plan->bytes, payload(1, 9));
}

TEST(SegmentKey, HexIsReversible) {
  const SegmentKey key = segmentKey(5);
  EXPECT_EQ(SegmentKey::fromHex(key.hex()), key);
  EXPECT_FALSE(SegmentKey::fromHex(key.hex().substr(1)));
  EXPECT_FALSE(SegmentKey::fromHex(std::string(64, 'G')));
  EXPECT_FALSE(SegmentKey::fromHex(std::string(64, 'A')));
}

TEST(BootId, ReadsAUuidOnly) {
  EXPECT_NE(parseBootId("01234567-89ab-cdef-0123-456789abcdef\n"), BootId{});
  for (const char* text : {"", "01234567", "01234567-89ab-cdef-0123-456789abcdef0", "x"})
    EXPECT_EQ(parseBootId(text), BootId{}) << text;
  EXPECT_FALSE(isSameBoot(BootId{}, BootId{}));
}

}  // namespace
}  // namespace hearth::cache
