// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "cache/object/store_failure.h"
#include "cache/object/store_key.h"
#include "memory/mapping.h"
#include "memory/sigbus_guard.h"

namespace hearth::cache {

// Lays the pages of a mapped file over memory that holds the same bytes, which other threads may be
// reading. `address` is page-aligned, its memory a private mapping with whole pages of its own for
// the mapping's size. That part then lives as long as the caller's memory. Error: kIo; the memory
// is as before.
Status layOver(const memory::Mapping& file, void* address);

// The payload of one segment, shared by all of the process that found it: a read-only mapping of
// its object, or memory of this process. It stays valid when the object is removed from the store.
// Immutable and thread-safe.
class Segment {
 public:
  Segment(const SegmentKey& key, memory::Mapping mapping)
      : key_(key),
        mapping_(std::move(mapping)),
        watched_(mapping_.data(), mapping_.size() + memory::Mapping::kReadableBehind),
        bytes_(mapping_.data(), mapping_.size()) {}
  // A part of memory that `owner` keeps and that nobody changes.
  Segment(const SegmentKey& key, std::span<const uint8_t> bytes, std::shared_ptr<const void> owner)
      : key_(key), owner_(std::move(owner)), bytes_(bytes) {}

  const SegmentKey& key() const { return key_; }
  // A mapped one has Mapping::kReadableBehind readable bytes behind it, and is aligned to 2 MiB
  // from 2 MiB on, else to a page; in a bundle to 64 KiB. Memory of this process is as its
  // publisher made it.
  const uint8_t* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  std::span<const uint8_t> bytes() const { return bytes_; }
  // Whether it is a mapping of a file, which somebody may truncate.
  bool isMapped() const { return owner_ == nullptr; }

  // layOver of the payload's pages. Does nothing when the segment is that memory. Error: also
  // kUnsupported for other memory of this process.
  Status mapOver(void* address) const;

  // Brings a part of the pages in and into this process's page tables; returns when that is done.
  // Best effort. `offset` is a multiple of a page's size.
  void prefault(size_t offset, size_t size) const;
  void prefault() const { prefault(0, size()); }

  // True for the first caller: it brings the pages in for all of this process.
  bool claimPages() const { return !areClaimed_.exchange(true, std::memory_order_relaxed); }
  // Whether the first page is in memory, as far as the kernel tells.
  bool isResident() const;
  // Asks for reading in huge pages from now on.
  void expectDisk() const;

  // Whether the background check found a wrong block. Set once, never cleared.
  bool isCorrupt() const { return corrupt_.load(std::memory_order_acquire); }
  void markCorrupt() const { corrupt_.store(true, std::memory_order_release); }

 private:
  SegmentKey key_;
  memory::Mapping mapping_;            // empty for memory of this process
  memory::WatchedPages watched_;       // all that is read of the file, which may be truncated
  std::shared_ptr<const void> owner_;  // null for a mapping
  std::span<const uint8_t> bytes_;
  mutable std::atomic<bool> corrupt_ = false;
  mutable std::atomic<bool> areClaimed_ = false;
};

using SegmentRef = std::shared_ptr<const Segment>;

// A segment, or why there is none (kAbsent, kCorrupt, kForeign, kIoError).
struct FoundSegment {
  SegmentRef segment;
  StoreReason reason = StoreReason::kNone;
  explicit operator bool() const { return segment != nullptr; }
};

}  // namespace hearth::cache
