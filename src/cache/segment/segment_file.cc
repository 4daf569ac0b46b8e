// SPDX-License-Identifier: Apache-2.0
#include "cache/segment/segment_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/crash_point.h"
#include "base/fault.h"
#include "base/format.h"
#include "cache/identity/content_hash.h"
#include "cache/object/file_format.h"
#include "cache/object/object_file.h"

namespace hearth::cache {
namespace {

constexpr char kMagic[8] = {'H', 'R', 'T', 'H', 'S', 'E', 'G', '\n'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kDigestAlignment = 64;
// A bound, since a file with holes can have any size. The tail of a file of a terabyte is 32 MiB.
constexpr uint64_t kMaxSegmentFile = uint64_t{1} << 40;
// The size of one write call: large, so that the page cache gets large folios.
constexpr size_t kWriteSize = size_t{8} << 20;

struct Trailer {
  char magic[8];
  uint32_t version;
  uint32_t blockSize;
  uint8_t key[32];
  uint64_t payloadSize;
  uint64_t digestsOffset;
  uint64_t fileSize;
  uint64_t reserved;
  uint8_t writtenIn[16];
  uint8_t checksum[32];  // over the block digests and the trailer up to here
};
static_assert(kLeastSegmentTail == kDigestSize + sizeof(Trailer));
constexpr size_t kChecked = offsetof(Trailer, checksum);

uint64_t digestsOffset(uint64_t payloadSize) {
  return (payloadSize + kDigestAlignment - 1) / kDigestAlignment * kDigestAlignment;
}

base::Sha256Digest checksumOf(const uint8_t* digests, size_t size, const Trailer& trailer) {
  base::Sha256 hash;
  hash.update(digests, size);
  hash.update(&trailer, kChecked);
  return hash.finish();
}

std::span<const uint8_t> blockOf(std::span<const uint8_t> payload, size_t index) {
  const size_t offset = index * kSegmentBlock;
  return payload.subspan(offset, std::min<size_t>(kSegmentBlock, payload.size() - offset));
}

std::unexpected<StoreFailure> wrongBlock(const SegmentInfo& info, size_t index) {
  return storeFail(StoreReason::kCorrupt, "Block {} of the segment {} has changed.", index,
                   info.key.hex());
}

}  // namespace

uint64_t segmentTailSize(uint64_t fileSize) {
  const uint64_t most =
      sizeof(Trailer) + kDigestAlignment + (fileSize / kSegmentBlock + 1) * kDigestSize;
  return std::min(fileSize, most);
}

StoreResult<SegmentInfo> parseSegmentTail(std::span<const uint8_t> tail, uint64_t fileSize) {
  if (tail.size() < sizeof(Trailer))
    return storeFail(StoreReason::kCorrupt, "A segment file has {} bytes, fewer than a trailer.",
                     tail.size());
  Trailer trailer;
  std::memcpy(&trailer, tail.data() + tail.size() - sizeof trailer, sizeof trailer);
  if (std::memcmp(trailer.magic, kMagic, sizeof kMagic) != 0 || trailer.version != kVersion ||
      trailer.blockSize != kSegmentBlock)
    return storeFail(StoreReason::kCorrupt, "A segment file has no trailer of version {}.",
                     kVersion);
  // Checked against the file's size first, so that no sum below can wrap.
  if (fileSize > kMaxSegmentFile || trailer.fileSize != fileSize || trailer.payloadSize == 0 ||
      trailer.payloadSize > fileSize)
    return storeFail(StoreReason::kCorrupt,
                     "A segment file of {} bytes claims {} bytes and a payload of {}.", fileSize,
                     trailer.fileSize, trailer.payloadSize);
  const uint64_t offset = digestsOffset(trailer.payloadSize);
  const uint64_t digestBytes = segmentBlocks(trailer.payloadSize) * kDigestSize;
  if (trailer.digestsOffset != offset || offset + digestBytes + sizeof trailer != fileSize)
    return storeFail(StoreReason::kCorrupt,
                     "A segment file of {} bytes has its block digests at {} instead of {}.",
                     fileSize, trailer.digestsOffset, offset);
  const uint64_t behindPayload = fileSize - trailer.payloadSize;
  if (behindPayload > tail.size())
    return storeFail(StoreReason::kCorrupt, "A segment file has {} bytes behind its payload.",
                     behindPayload);
  const auto digests = tail.subspan(tail.size() - sizeof trailer - digestBytes, digestBytes);
  const base::Sha256Digest checksum = checksumOf(digests.data(), digests.size(), trailer);
  const auto padding = tail.subspan(tail.size() - behindPayload, offset - trailer.payloadSize);
  if (std::memcmp(checksum.data(), trailer.checksum, checksum.size()) != 0 ||
      std::ranges::any_of(padding, [](uint8_t byte) { return byte != 0; }))
    return storeFail(StoreReason::kCorrupt, "A segment file's trailer has changed.");
  SegmentInfo info;
  std::memcpy(info.key.bytes.data(), trailer.key, sizeof trailer.key);
  info.payloadSize = trailer.payloadSize;
  std::memcpy(info.writtenIn.data(), trailer.writtenIn, sizeof trailer.writtenIn);
  info.blocks.resize(digestBytes / kDigestSize);
  std::memcpy(info.blocks.data(), digests.data(), digestBytes);
  return info;
}

std::vector<uint8_t> makeSegmentTail(const SegmentInfo& info) {
  const uint64_t offset = digestsOffset(info.payloadSize);
  const size_t padding = static_cast<size_t>(offset - info.payloadSize);
  const size_t digestBytes = info.blocks.size() * kDigestSize;
  Trailer trailer{};
  std::memcpy(trailer.magic, kMagic, sizeof kMagic);
  trailer.version = kVersion;
  trailer.blockSize = kSegmentBlock;
  std::memcpy(trailer.key, info.key.bytes.data(), sizeof trailer.key);
  trailer.payloadSize = info.payloadSize;
  trailer.digestsOffset = offset;
  trailer.fileSize = offset + digestBytes + sizeof trailer;
  std::memcpy(trailer.writtenIn, info.writtenIn.data(), sizeof trailer.writtenIn);
  const auto* digests = reinterpret_cast<const uint8_t*>(info.blocks.data());
  const base::Sha256Digest checksum = checksumOf(digests, digestBytes, trailer);
  std::memcpy(trailer.checksum, checksum.data(), checksum.size());
  std::vector<uint8_t> tail(padding + digestBytes + sizeof trailer);
  std::memcpy(tail.data() + padding, digests, digestBytes);
  std::memcpy(tail.data() + padding + digestBytes, &trailer, sizeof trailer);
  return tail;
}

StoreResult<SegmentInfo> readSegmentInfo(int fd, uint64_t fileSize, const SegmentKey& key) {
  if (fileSize > kMaxSegmentFile)
    return storeFail(StoreReason::kCorrupt, "The segment {} has {} bytes, more than {}.", key.hex(),
                     fileSize, kMaxSegmentFile);
  std::vector<uint8_t> tail(static_cast<size_t>(segmentTailSize(fileSize)));
  HEARTH_TRY(readAt(fd, tail.data(), tail.size(), fileSize - tail.size()));
  HEARTH_ASSIGN(SegmentInfo info, parseSegmentTail(tail, fileSize));
  if (info.key != key)
    return storeFail(StoreReason::kCorrupt, "The file of the segment {} holds the segment {}.",
                     key.hex(), info.key.hex());
  return info;
}

StoreStatus checkSegmentBlock(int fd, const SegmentInfo& info, size_t index,
                              std::span<uint8_t> buffer) {
  const uint64_t offset = index * kSegmentBlock;
  const size_t size = info.blockSize(index);
  HEARTH_TRY(readAt(fd, buffer.data(), size, info.offset + offset));
  if (base::Sha256::of(buffer.first(size)) != info.blocks[index]) return wrongBlock(info, index);
  return {};
}

StoreStatus checkSegmentBlocks(int fd, const SegmentInfo& info, uint64_t from,
                               const BlockProgress& progress) {
  std::vector<uint8_t> buffer(static_cast<size_t>(std::min(kSegmentBlock, info.payloadSize)));
  for (size_t i = from; i < info.blocks.size(); ++i) {
    if (progress && !progress(i)) return {};
    HEARTH_TRY(checkSegmentBlock(fd, info, i, buffer));
  }
  return {};
}

StoreStatus checkSegmentPayload(std::span<const uint8_t> payload, const SegmentInfo& info,
                                uint64_t from, const BlockProgress& progress) {
  for (size_t i = from; i < info.blocks.size(); ++i) {
    if (progress && !progress(i)) return {};
    if (base::Sha256::of(blockOf(payload, i)) != info.blocks[i]) return wrongBlock(info, i);
  }
  return {};
}

StoreStatus compareSegmentBlocks(int fd, const SegmentInfo& info, const PayloadReader& right) {
  std::vector<uint8_t> buffer(static_cast<size_t>(std::min(kSegmentBlock, info.payloadSize)));
  for (size_t i = 0; i < info.blocks.size(); ++i) {
    const uint64_t offset = i * kSegmentBlock;
    const size_t size = info.blockSize(i);
    HEARTH_ASSIGN(const std::span<const uint8_t> bytes, right(offset, size));
    HEARTH_TRY(readAt(fd, buffer.data(), size, info.offset + offset));
    if (std::memcmp(buffer.data(), bytes.data(), size) != 0) return wrongBlock(info, i);
  }
  return {};
}

// Finds out that the disk is full before the work is done. Where the file system cannot tell, the
// writes will.
StoreStatus reservePayload(int fd, uint64_t offset, size_t size) {
  if (size >= kSegmentBlock &&
      retried([&] {
        return base::sys::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(size));
      }) != 0 &&
      (errno == ENOSPC || errno == EDQUOT))
    return storeErrno(errno, base::formatText("Reserving {} bytes on disk", size));
  return {};
}

StoreStatus writePayloadBytes(int fd, std::span<const uint8_t> payload, uint64_t offset) {
  HEARTH_TRY(reservePayload(fd, offset, payload.size()));
  return writeReserved(fd, payload, offset);
}

StoreStatus writeReserved(int fd, std::span<const uint8_t> bytes, uint64_t offset) {
  for (size_t done = 0; done < bytes.size(); done += kWriteSize) {
    const auto part = bytes.subspan(done, std::min(kWriteSize, bytes.size() - done));
    HEARTH_TRY(writeAt(fd, part.data(), part.size(), offset + done));
    HEARTH_CRASH_POINT("segment.after_write");
  }
  return {};
}

StoreStatus writePayload(int fd, const SegmentPayload& payload, SegmentInfo& info) {
  if (payload.blocks.size() == segmentBlocks(payload.size()))
    info.blocks.assign(payload.blocks.begin(), payload.blocks.end());
  else
    info.blocks = blockDigests(payload.bytes);
  if (!payload.mayChange) return writePayloadBytes(fd, payload.bytes, info.offset);
  HEARTH_TRY(reservePayload(fd, info.offset, payload.size()));
  std::vector<uint8_t> block;
  for (size_t i = 0; i < info.blocks.size(); ++i) {
    const std::span<const uint8_t> part = blockOf(payload.bytes, i);
    block.assign(part.begin(), part.end());
    if (base::Sha256::of(block) != info.blocks[i])
      return storeFail(StoreReason::kChanged, "The bytes of a segment change while it is written.");
    HEARTH_TRY(writeAt(fd, block.data(), block.size(), info.offset + i * kSegmentBlock));
    HEARTH_CRASH_POINT("segment.after_write");
  }
  return {};
}

StoreStatus writeSegmentTail(int fd, const SegmentInfo& info) {
  const std::vector<uint8_t> tail = makeSegmentTail(info);
  HEARTH_TRY(writeAt(fd, tail.data(), tail.size(), info.payloadSize));
  HEARTH_CRASH_POINT("segment.after_tail");
  return {};
}

StoreResult<SegmentInfo> writeSegmentFile(int fd, const SegmentKey& key,
                                          const SegmentPayload& payload, const BootId& boot) {
  if (payload.size() == 0)
    return storeFail(StoreReason::kBadRequest, "The segment {} has no bytes.", key.hex());
  SegmentInfo info{.key = key, .payloadSize = payload.size(), .writtenIn = boot};
  HEARTH_TRY(writePayload(fd, payload, info));
  HEARTH_TRY(writeSegmentTail(fd, info));
  return info;
}

}  // namespace hearth::cache
