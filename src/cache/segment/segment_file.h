// SPDX-License-Identifier: Apache-2.0
// The format of a segment object:
//
//   payload          from offset 0, so that it is aligned for huge pages without a hole before it
//   zeros            up to a multiple of 64
//   block digests    SHA-256 of each 1 MiB of the payload, the last one shorter
//   trailer          128 bytes, little endian, with a SHA-256 over digests and trailer
//
// The trailer ends the file, so a file that was cut or grew has none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/sha256.h"
#include "cache/identity/content_hash.h"
#include "cache/object/boot_id.h"
#include "cache/object/store_failure.h"
#include "cache/object/store_key.h"
#include "cache/segment/block_checks.h"
#include "cache/segment/segment_payload.h"

namespace hearth::cache {

inline constexpr uint64_t kSegmentBlock = kHashBlock;

// How many blocks a payload has.
inline uint64_t segmentBlocks(uint64_t payloadSize) {
  return payloadSize / kSegmentBlock + (payloadSize % kSegmentBlock != 0 ? 1 : 0);
}

// The least size of what follows the payload in a segment file: digests and trailer.
inline constexpr uint64_t kLeastSegmentTail = sizeof(base::Sha256Digest) + 128;

// What a file says about the payload of a segment. Value type.
struct SegmentInfo {
  SegmentKey key;
  uint64_t offset = 0;  // of the payload in the file; 0 in a segment file
  uint64_t payloadSize = 0;
  BootId writtenIn{};  // the boot during which it was written
  std::vector<base::Sha256Digest> blocks;

  // The size of a block in bytes: the last one may be shorter.
  size_t blockSize(uint64_t index) const {
    return static_cast<size_t>(std::min(kSegmentBlock, payloadSize - index * kSegmentBlock));
  }
};

// How many bytes from the file's end parseSegmentTail wants to see at most.
uint64_t segmentTailSize(uint64_t fileSize);

// Parses the end of a segment file of `fileSize` bytes; `tail` holds its last min(fileSize,
// segmentTailSize(fileSize)) bytes. All sizes in the result lie within the file. Any defect is
// kCorrupt. Never reads outside `tail`, whatever it holds.
StoreResult<SegmentInfo> parseSegmentTail(std::span<const uint8_t> tail, uint64_t fileSize);

// Everything that follows the payload. `info.blocks` has one digest for each block.
std::vector<uint8_t> makeSegmentTail(const SegmentInfo& info);

// Reads and checks the tail of an open segment file: kCorrupt also when the file has another key.
StoreResult<SegmentInfo> readSegmentInfo(int fd, uint64_t fileSize, const SegmentKey& key);

// Reads block `index` of the payload into `buffer` (kSegmentBlock bytes) and compares its digest.
StoreStatus checkSegmentBlock(int fd, const SegmentInfo& info, size_t index,
                              std::span<uint8_t> buffer);

// Reads and checks all blocks from `from` on. Before each block it calls `progress`, if there is
// one; false ends the check without an error.
StoreStatus checkSegmentBlocks(int fd, const SegmentInfo& info, uint64_t from = 0,
                               const BlockProgress& progress = {});
// The same for a payload in memory.
StoreStatus checkSegmentPayload(std::span<const uint8_t> payload, const SegmentInfo& info,
                                uint64_t from, const BlockProgress& progress);

// Returns `size` bytes of a payload from `offset` on, valid until the next call.
using PayloadReader =
    std::function<StoreResult<std::span<const uint8_t>>(uint64_t offset, size_t size)>;
// Compares all blocks with the bytes that `right` returns: kCorrupt where one differs.
StoreStatus compareSegmentBlocks(int fd, const SegmentInfo& info, const PayloadReader& right);

// Writes the bytes of a payload at `offset`. Errors as writeSegmentFile.
StoreStatus writePayloadBytes(int fd, std::span<const uint8_t> payload, uint64_t offset);
// The two steps of it: the first fails where the disk has no room for the payload, the second
// writes the payload or a part of it.
StoreStatus reservePayload(int fd, uint64_t offset, size_t size);
StoreStatus writeReserved(int fd, std::span<const uint8_t> bytes, uint64_t offset);

// Writes a payload at info.offset and fills in info.blocks. Errors as writeSegmentFile.
StoreStatus writePayload(int fd, const SegmentPayload& payload, SegmentInfo& info);

// Writes what follows the payload in a segment file, which is then complete. Errors as
// writeSegmentFile.
StoreStatus writeSegmentTail(int fd, const SegmentInfo& info);

// Writes a segment file into the empty file `fd` and returns what parseSegmentTail would. Errors:
// kNoSpace, kReadOnly, kIoError, kChanged; the file is then useless.
StoreResult<SegmentInfo> writeSegmentFile(int fd, const SegmentKey& key,
                                          const SegmentPayload& payload, const BootId& boot);

}  // namespace hearth::cache
