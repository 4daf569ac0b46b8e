// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "cache/object/store_failure.h"
#include "cache/object/store_key.h"
#include "cache/segment/segment.h"
#include "cache/store/build_ticket.h"
#include "cache/store/segment_writer.h"

namespace hearth::cache {

// What SegmentStore::publishAsync() is given.
struct PublishRequest {
  std::optional<SegmentKey> key;      // none: contentSegmentKey(payload), computed by the store
  std::span<const uint8_t> payload;   // must not change while `owner` lives
  std::shared_ptr<const void> owner;  // keeps the payload's memory alive
  BuildTicket ticket;                 // released when the request is done
  // Whether the payload is somebody else's memory, which may change although it must not. What is
  // written is then compared with what was hashed; kChanged when they differ.
  bool mayChange = false;
  // For a request without a key: called at most once, before `done`, with a mapping of the payload
  // in a file that may become the segment. A caller that maps it over the payload (layOver) frees
  // that memory before the payload is hashed. If the file does become the segment, the segment's
  // data() is that of the mapping. Runs on the same threads as `done`; on the caller's where much
  // is queued. May be empty.
  std::function<void(const memory::Mapping& copy)> copied;
  // In place of `payload`: what this store's beginWriting() returned, once map() has succeeded. No
  // key is given, and `copied` is not called.
  std::unique_ptr<SegmentWriter> written;
  // Called once, unless the process forks or dies: with the segment, or with the reason why there
  // is none. The segment may lie elsewhere than the payload; Segment::mapOver can then free the
  // payload's memory. Runs on a thread of the store or on the caller's. May be empty.
  std::function<void(StoreResult<SegmentRef>)> done;
};

}  // namespace hearth::cache
