// SPDX-License-Identifier: Apache-2.0
#include "cache/bundle/bundle_file.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <unordered_set>

#include "cache/blob/blob_cache_file.h"
#include "cache/bundle/bundle_notes.h"
#include "cache/object/file_format.h"
#include "cache/object/object_file.h"
#include "cache/store/store_facts.h"
#include "memory/page_size.h"

namespace hearth::cache {
namespace {

constexpr char kMagic[8] = {'H', 'R', 'T', 'H', 'B', 'N', 'D', '\n'};
constexpr uint32_t kVersion = 2;
// Bounds, so that the sums below cannot wrap and an index cannot take gigabytes.
constexpr uint64_t kMaxFile = uint64_t{1} << 40;
constexpr uint64_t kMaxSegments = uint64_t{1} << 20;
constexpr uint64_t kMaxBlocks = uint64_t{2} << 20;
constexpr uint64_t kHugePage = uint64_t{2} << 20;

struct Head {
  char magic[8];
  uint32_t version;
  uint32_t blockSize;
  uint64_t fileSize;
  uint64_t indexOffset;
  uint64_t segmentCount;
  uint64_t blockCount;
  uint64_t planSize;
  uint64_t notesOffset;
  uint64_t factsSize;
  uint8_t writtenIn[16];
  uint8_t indexDigest[32];
};
static_assert(sizeof(Head) == 120);

struct Entry {
  uint8_t key[32];
  uint64_t offset;
  uint64_t size;
};
static_assert(sizeof(Entry) == 48);

uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

uint64_t BundleHead::indexSize() const {
  return segmentCount * sizeof(Entry) + blockCount * kDigestSize + planSize + factsSize;
}

base::Sha256Digest BundleHead::identity() const {
  return base::Sha256::of(makeBundleHead(*this));
}

uint64_t bundlePayloadOffset(uint64_t end, uint64_t size) {
  // So that the payload can be mapped over memory that was packed here.
  const uint64_t page = std::max<uint64_t>(kBundleAlignment, memory::pageSize());
  return alignUp(std::max<uint64_t>(end, kBundleHeadSize), size >= kHugePage ? kHugePage : page);
}

StoreResult<BundleHead> parseBundleHead(std::span<const uint8_t> bytes, uint64_t fileSize) {
  if (bytes.size() < kBundleHeadSize || fileSize < kBundleHeadSize || fileSize > kMaxFile)
    return storeFail(StoreReason::kCorrupt, "A bundle has {} bytes, outside {} to {}.", fileSize,
                     kBundleHeadSize, kMaxFile);
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.version != kVersion ||
      head.blockSize != kSegmentBlock)
    return storeFail(StoreReason::kCorrupt, "A bundle has no head of version {}.", kVersion);
  const auto body = bytes.first(kBundleHeadSize - kDigestSize);
  const base::Sha256Digest digest = base::Sha256::of(body);
  if (std::memcmp(digest.data(), body.data() + body.size(), kDigestSize) != 0 ||
      std::ranges::any_of(body.subspan(sizeof head), [](uint8_t byte) { return byte != 0; }))
    return storeFail(StoreReason::kCorrupt, "The head of a bundle has changed.");
  if (head.fileSize != fileSize || head.segmentCount > kMaxSegments ||
      head.blockCount > kMaxBlocks || head.planSize > kMaxPlanFile ||
      head.factsSize > maxBlobCacheFile(kFactLimits) || head.indexOffset < kBundleHeadSize ||
      head.indexOffset > fileSize || head.indexOffset % kBundleAlignment != 0)
    return storeFail(StoreReason::kCorrupt,
                     "A bundle of {} bytes claims {} bytes, {} segments in {} blocks, a plan of {} "
                     "bytes and facts of {} bytes at {}.",
                     fileSize, head.fileSize, head.segmentCount, head.blockCount, head.planSize,
                     head.factsSize, head.indexOffset);
  BundleHead result{.fileSize = head.fileSize,
                    .indexOffset = head.indexOffset,
                    .segmentCount = head.segmentCount,
                    .blockCount = head.blockCount,
                    .planSize = head.planSize,
                    .notesOffset = head.notesOffset,
                    .factsSize = head.factsSize};
  std::memcpy(result.writtenIn.data(), head.writtenIn, sizeof head.writtenIn);
  std::memcpy(result.indexDigest.data(), head.indexDigest, sizeof head.indexDigest);
  const uint64_t notes = alignUp(head.indexOffset + result.indexSize(), kBundleAlignment);
  if (head.notesOffset != notes || fileSize != notes + BundleNotes::kBytes)
    return storeFail(StoreReason::kCorrupt,
                     "A bundle of {} bytes has its notes at {} instead of {}.", fileSize,
                     head.notesOffset, notes);
  return result;
}

std::vector<uint8_t> makeBundleHead(const BundleHead& from) {
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kVersion;
  head.blockSize = kSegmentBlock;
  head.fileSize = from.fileSize;
  head.indexOffset = from.indexOffset;
  head.segmentCount = from.segmentCount;
  head.blockCount = from.blockCount;
  head.planSize = from.planSize;
  head.notesOffset = from.notesOffset;
  head.factsSize = from.factsSize;
  std::memcpy(head.writtenIn, from.writtenIn.data(), sizeof head.writtenIn);
  std::memcpy(head.indexDigest, from.indexDigest.data(), sizeof head.indexDigest);
  std::vector<uint8_t> bytes(kBundleHeadSize);
  std::memcpy(bytes.data(), &head, sizeof head);
  const base::Sha256Digest digest =
      base::Sha256::of(std::span(bytes).first(kBundleHeadSize - kDigestSize));
  std::memcpy(bytes.data() + kBundleHeadSize - kDigestSize, digest.data(), kDigestSize);
  return bytes;
}

StoreResult<BundleContent> parseBundleIndex(std::span<const uint8_t> index,
                                            const BundleHead& head) {
  if (index.size() != head.indexSize() || base::Sha256::of(index) != head.indexDigest)
    return storeFail(StoreReason::kCorrupt, "The index of a bundle has changed.");
  BundleContent content;
  content.segments.resize(static_cast<size_t>(head.segmentCount));
  const auto digests = index.subspan(content.segments.size() * sizeof(Entry),
                                     static_cast<size_t>(head.blockCount) * kDigestSize);
  std::unordered_set<SegmentKey> keys;
  uint64_t end = kBundleHeadSize;
  uint64_t firstBlock = 0;
  for (size_t i = 0; i < content.segments.size(); ++i) {
    Entry entry;
    std::memcpy(&entry, index.data() + i * sizeof entry, sizeof entry);
    SegmentInfo& info = content.segments[i];
    std::memcpy(info.key.bytes.data(), entry.key, sizeof entry.key);
    const uint64_t blocks = segmentBlocks(entry.size);
    if (entry.size == 0 || entry.offset < end || entry.offset % kBundleAlignment != 0 ||
        entry.offset > head.indexOffset || entry.size > head.indexOffset - entry.offset ||
        blocks > head.blockCount - firstBlock || !keys.insert(info.key).second)
      return storeFail(StoreReason::kCorrupt, "Segment {} of a bundle claims {} bytes at {}.", i,
                       entry.size, entry.offset);
    info.offset = entry.offset;
    info.payloadSize = entry.size;
    info.writtenIn = head.writtenIn;
    info.blocks.resize(static_cast<size_t>(blocks));
    std::memcpy(info.blocks.data(), digests.data() + firstBlock * kDigestSize,
                info.blocks.size() * kDigestSize);
    end = entry.offset + entry.size;
    firstBlock += blocks;
  }
  if (firstBlock != head.blockCount)
    return storeFail(StoreReason::kCorrupt, "A bundle has {} blocks and digests of {}.", firstBlock,
                     head.blockCount);
  const auto tail = index.last(static_cast<size_t>(head.planSize + head.factsSize));
  HEARTH_ASSIGN(content.plan, parsePlanFile(tail.first(static_cast<size_t>(head.planSize))));
  for (const SegmentKey& key : content.plan.segments)
    if (!keys.contains(key))
      return storeFail(StoreReason::kCorrupt,
                       "The plan of a bundle names the segment {}, which is "
                       "not there.",
                       key.hex());
  HEARTH_ASSIGN(content.facts, parseBlobCacheFile(tail.last(static_cast<size_t>(head.factsSize))));
  BlobTable table(kFactLimits, {});
  for (const auto& [key, fact] : content.facts)
    if (!table.insert(key, fact))
      return storeFail(StoreReason::kCorrupt, "A bundle has a fact of {} bytes under a key of {}.",
                       fact.value.size(), key.size());
  if (table.bytes() > kFactLimits.maxBytes)
    return storeFail(StoreReason::kCorrupt, "A bundle has facts of {} bytes, more than {}.",
                     table.bytes(), kFactLimits.maxBytes);
  return content;
}

StoreResult<std::vector<uint8_t>> makeBundleIndex(const BundleContent& content,
                                                  uint64_t payloadsEnd, BundleHead& head) {
  HEARTH_ASSIGN(const std::vector<uint8_t> plan, makePlanFile(content.plan));
  const std::vector<uint8_t> facts = makeBlobCacheFile(content.facts);
  head.segmentCount = content.segments.size();
  head.blockCount = 0;
  for (const SegmentInfo& info : content.segments) head.blockCount += info.blocks.size();
  head.planSize = plan.size();
  head.factsSize = facts.size();
  head.indexOffset = bundlePayloadOffset(payloadsEnd, 0);
  head.notesOffset = alignUp(head.indexOffset + head.indexSize(), kBundleAlignment);
  head.fileSize = head.notesOffset + BundleNotes::kBytes;
  if (head.segmentCount > kMaxSegments || head.blockCount > kMaxBlocks || head.fileSize > kMaxFile)
    return storeFail(StoreReason::kBadRequest, "A bundle of {} segments and {} bytes is too large.",
                     head.segmentCount, head.fileSize);
  std::vector<uint8_t> index(static_cast<size_t>(head.indexSize()));
  uint8_t* position = index.data();
  const auto append = [&](const void* data, size_t size) {
    if (size != 0) std::memcpy(position, data, size);
    position += size;
  };
  for (const SegmentInfo& info : content.segments) {
    Entry entry{.offset = info.offset, .size = info.payloadSize};
    std::memcpy(entry.key, info.key.bytes.data(), sizeof entry.key);
    append(&entry, sizeof entry);
  }
  for (const SegmentInfo& info : content.segments)
    append(info.blocks.data(), info.blocks.size() * kDigestSize);
  append(plan.data(), plan.size());
  append(facts.data(), facts.size());
  head.indexDigest = base::Sha256::of(index);
  return index;
}

StoreResult<BundleInfo> readBundleInfo(int fd, uint64_t fileSize) {
  std::vector<uint8_t> bytes(kBundleHeadSize);
  if (fileSize < bytes.size())
    return storeFail(StoreReason::kCorrupt, "A bundle has {} bytes, fewer than its head.",
                     fileSize);
  HEARTH_TRY(readAt(fd, bytes.data(), bytes.size(), 0));
  BundleInfo info;
  HEARTH_ASSIGN(info.head, parseBundleHead(bytes, fileSize));
  bytes.resize(static_cast<size_t>(info.head.indexSize()));
  HEARTH_TRY(readAt(fd, bytes.data(), bytes.size(), info.head.indexOffset));
  HEARTH_ASSIGN(info.content, parseBundleIndex(bytes, info.head));
  return info;
}

}  // namespace hearth::cache
