// SPDX-License-Identifier: Apache-2.0
// The format of a bundle: one plan and all its segments in one file.
//
//   head        4096 bytes, little endian, of which the last 32 are a SHA-256 over the rest
//   payloads    each from a multiple of 4096, or of the writer's pages where those are larger, from
//               2 MiB on of 2 MiB, with holes between
//   index       from a multiple of 4096: an entry for each segment, in the order of the payloads;
//               SHA-256 of each MiB of each payload; the plan as in a plan file; facts as in the
//               file of a blob cache. The head has the SHA-256 of the index.
//   notes       from a multiple of 4096: see bundle_notes.h
//
// The head says how long the file is, so a file that was cut or grew has a wrong one. Machines
// whose pages are larger than the writer's read the file as well: a payload then begins in the
// middle of a page of its mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/blob/blob_table.h"
#include "cache/object/boot_id.h"
#include "cache/object/store_failure.h"
#include "cache/plan/plan_file.h"
#include "cache/segment/segment_file.h"

namespace hearth::cache {

inline constexpr size_t kBundleHeadSize = 4096;
inline constexpr uint64_t kBundleAlignment = 4096;

// The content of the head. Index and notes lie within the file.
struct BundleHead {
  uint64_t fileSize = 0;
  uint64_t indexOffset = 0;
  uint64_t segmentCount = 0, blockCount = 0;
  uint64_t planSize = 0;
  uint64_t notesOffset = 0;
  uint64_t factsSize = 0;
  BootId writtenIn{};  // the boot during which it was written
  base::Sha256Digest indexDigest{};

  uint64_t indexSize() const;
  // A digest that tells this bundle from all others.
  base::Sha256Digest identity() const;
};

// Parses the first kBundleHeadSize bytes of a file of `fileSize` bytes. Any defect is kCorrupt.
StoreResult<BundleHead> parseBundleHead(std::span<const uint8_t> head, uint64_t fileSize);
std::vector<uint8_t> makeBundleHead(const BundleHead& head);

// What a bundle holds. Value type.
struct BundleContent {
  std::vector<SegmentInfo> segments;  // in the order of their payloads; each key once
  PlanContent plan;                   // names only segments of this bundle
  BlobMap facts;                      // within kFactLimits
};

// Parses an index of head.indexSize() bytes. Checks that all payloads lie between head and index,
// that no two overlap, and that the facts keep their limits. Any defect is kCorrupt; never reads
// outside `index`.
StoreResult<BundleContent> parseBundleIndex(std::span<const uint8_t> index, const BundleHead& head);

// Makes the index of a bundle and sets all fields of `head` but `writtenIn`. `payloadsEnd` is where
// the last payload ends. kBadRequest when the index is too large.
StoreResult<std::vector<uint8_t>> makeBundleIndex(const BundleContent& content,
                                                  uint64_t payloadsEnd, BundleHead& head);

// The offset of a payload of `size` bytes when all payloads before it end at `end`, in a bundle
// that this machine writes.
uint64_t bundlePayloadOffset(uint64_t end, uint64_t size);

// Head and index of a bundle.
struct BundleInfo {
  BundleHead head;
  BundleContent content;
};
// Reads and checks head and index of an open bundle: kCorrupt, kIoError.
StoreResult<BundleInfo> readBundleInfo(int fd, uint64_t fileSize);

}  // namespace hearth::cache
