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

// Maps the pages of a mapped file over memory that holds the same bytes and that other threads may
// be reading meanwhile. `address` is page-aligned and lies in a private mapping; whole pages there,
// for the size of `file`, belong to the caller. The new mapping lives as long as the caller's
// memory. Error: kIo; the memory is then as before.
Status layOver(const memory::Mapping& file, void* address);

// The payload of one segment: a read-only mapping of its object, or memory of this process. All
// users in the process share it. It stays valid when the object is removed from the store.
// Immutable and thread-safe.
class Segment {
 public:
  Segment(const SegmentKey& key, memory::Mapping mapping)
      : key_(key),
        mapping_(std::move(mapping)),
        watched_(mapping_.data(), mapping_.size() + memory::Mapping::kReadableBehind),
        bytes_(mapping_.data(), mapping_.size()) {}
  // A range of memory that `owner` keeps alive and that nobody changes.
  Segment(const SegmentKey& key, std::span<const uint8_t> bytes, std::shared_ptr<const void> owner)
      : key_(key), owner_(std::move(owner)), bytes_(bytes) {}

  const SegmentKey& key() const { return key_; }
  // Alignment: a mapping of 2 MiB or more to 2 MiB, a smaller one to a page, one in a bundle to 64
  // KiB; memory of this process as its publisher made it. Mapping::kReadableBehind bytes behind a
  // mapping can be read.
  const uint8_t* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  std::span<const uint8_t> bytes() const { return bytes_; }
  // Whether it is a mapping of a file, which somebody may truncate.
  bool isMapped() const { return owner_ == nullptr; }

  // Maps the payload's pages over `address` (layOver). Does nothing when the segment is that
  // memory. Errors: kIo; kUnsupported when the segment is other memory of this process.
  Status mapOver(void* address) const;

  // Brings a range of pages into memory and into this process's page tables, and returns when that
  // is done. Best effort. `offset` is a multiple of the page size.
  void prefault(size_t offset, size_t size) const;
  void prefault() const { prefault(0, size()); }

  // True for the first caller, who then prefetches the pages for the whole process.
  bool claimPages() const { return !areClaimed_.exchange(true, std::memory_order_relaxed); }
  // Whether the first page is in memory, as far as the kernel tells.
  bool isResident() const;
  // Asks the kernel to read the file in huge pages from now on.
  void expectDisk() const;

  // Whether a wrong block was found, or pages of the file were lost and read as zeros. Never
  // cleared, also when a user has replaced the bytes: nobody else is to use them.
  bool isCorrupt() const { return corrupt_.load(std::memory_order_acquire) || hasLosses(); }
  // Whether pages were lost.
  bool hasLosses() const { return watched_.hasLosses(); }
  // True for the first caller.
  bool markCorrupt() const { return !corrupt_.exchange(true, std::memory_order_acq_rel); }

 private:
  SegmentKey key_;
  memory::Mapping mapping_;            // empty for memory of this process
  memory::WatchedPages watched_;       // what is read of the file, which may be truncated
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
