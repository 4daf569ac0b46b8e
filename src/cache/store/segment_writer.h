// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cache/object/store_failure.h"
#include "memory/mapping.h"

namespace hearth::cache {

// A payload that is written into a store part by part, so that it never lies in memory as a whole:
// SegmentStore::beginWriting() makes it, PublishRequest::written publishes it. Removed if it is not
// published. Not thread-safe; keeps what it needs of the store alive.
class SegmentWriter {
 public:
  // The page cache keeps in one huge page what one call of append() writes of so many bytes, if
  // they begin at a multiple of it.
  static constexpr size_t kHugePage = size_t{2} << 20;

  SegmentWriter() = default;
  SegmentWriter(const SegmentWriter&) = delete;
  SegmentWriter& operator=(const SegmentWriter&) = delete;
  virtual ~SegmentWriter() = default;

  // Writes the bytes that follow the ones written before. Errors: kNoSpace, kIoError, kBadRequest
  // when the payload would get longer than was said; the writer is then useless.
  virtual StoreStatus append(std::span<const uint8_t> bytes) = 0;

  // Maps the whole payload, read-only. If it is published, the segment's data() is that of the
  // mapping, unless the store has an equal one. Errors: kIoError, kBadRequest when bytes are
  // missing.
  virtual StoreResult<const memory::Mapping*> map() = 0;
};

}  // namespace hearth::cache
