// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "cache/segment_key.h"
#include "memory/mapping.h"

namespace hearth::cache {

// The payload of one segment object, mapped read-only and shared by all of the process that found
// it. It stays valid when the object is removed from the store. Immutable and thread-safe.
class Segment {
 public:
  Segment(const SegmentKey& key, memory::Mapping mapping)
      : key_(key), mapping_(std::move(mapping)) {}

  const SegmentKey& key() const { return key_; }
  // At least one readable page lies behind; aligned to 2 MiB from 2 MiB on, else to a page.
  const uint8_t* data() const { return mapping_.data(); }
  size_t size() const { return mapping_.size(); }
  std::span<const uint8_t> bytes() const { return {data(), size()}; }

  // Lays the payload's pages over memory that holds the same bytes, which other threads may be
  // reading. `address` is page-aligned, its memory a private mapping with whole pages of its own
  // for size() bytes. That part then lives as long as the caller's mapping. Error: kIo, and the
  // memory is as before.
  Status mapOver(void* address) const;

  // Brings the pages in and into this process's page tables; returns when that is done. Best
  // effort.
  void prefault() const;

  // Whether the background check found a wrong block. Set once, never cleared.
  bool isCorrupt() const { return corrupt_.load(std::memory_order_acquire); }
  void markCorrupt() const { corrupt_.store(true, std::memory_order_release); }

 private:
  SegmentKey key_;
  memory::Mapping mapping_;
  mutable std::atomic<bool> corrupt_ = false;
};

using SegmentRef = std::shared_ptr<const Segment>;

}  // namespace hearth::cache
