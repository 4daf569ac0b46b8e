// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "base/mutex.h"
#include "base/result.h"
#include "cache/segment/segment.h"
#include "memory/mapping.h"
#include "memory/sigbus_guard.h"

namespace hearth::cpu {

// Packed weights in memory: made here, in private memory, or mapped from the segment store. What
// was made here turns into the store's pages once it is published, at the same address, so that
// kernels never notice. Shared by all prepared models that use the same bytes. Thread-safe.
class PackedSegment {
 public:
  // Zeroed private memory for packing into. Error: kOutOfMemory.
  static Result<std::shared_ptr<PackedSegment>> allocate(size_t size);
  explicit PackedSegment(cache::SegmentRef segment);
  PackedSegment(const PackedSegment&) = delete;
  PackedSegment& operator=(const PackedSegment&) = delete;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

  // Lays the pages of a file that has the same bytes over this memory, whose bytes are final. When
  // that does not work the private copy stays in use.
  void adoptCopy(const memory::Mapping& copy);
  // The same with the published segment, unless it is the copy's file.
  void adopt(cache::SegmentRef published);
  // Whether pages of the file behind it were lost, and read as zeros, since the last repair().
  bool hasLosses() const { return watched_.hasLosses(); }
  // True for the first who wants to publish it, until that has failed, so that models that share it
  // do not all write it.
  bool claimPublication() { return !isClaimed_.exchange(true); }
  void giveUpPublication() { isClaimed_ = false; }
  // Null before it was published.
  cache::SegmentRef published() const;

  // Replaces bytes that turned out wrong, while kernels read them: `write` gets a copy of all bytes
  // and puts the right ones in their places. The memory is this process's own from then on. Error:
  // kOutOfMemory, or that of `write`; the memory is as before.
  Status repair(const std::function<Status(uint8_t* bytes)>& write);

 private:
  PackedSegment() = default;

  memory::Mapping memory_;
  cache::SegmentRef origin_;  // whose mapping data_ is, where it is not memory_
  memory::WatchedPages watched_;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  std::atomic<bool> isClaimed_ = false;
  mutable base::Mutex mutex_;
  const uint8_t* copy_ = nullptr;  // the mapping that was laid over data_ last
  cache::SegmentRef published_;
};

}  // namespace hearth::cpu
