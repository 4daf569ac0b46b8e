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

// Packed weights in memory: packed here into private memory, or mapped from the segment store. Once
// private memory is published, the store's pages replace it at the same address, so that kernels
// never notice. Shared by all prepared models that use the same bytes. Thread-safe.
class PackedSegment {
 public:
  // Zeroed private memory for packing into, with huge pages but for the first `ordinary` bytes
  // (Mapping::anonymous()). Error: kOutOfMemory.
  static Result<std::shared_ptr<PackedSegment>> allocate(size_t size, size_t ordinary = 0);
  explicit PackedSegment(cache::SegmentRef segment);
  PackedSegment(const PackedSegment&) = delete;
  PackedSegment& operator=(const PackedSegment&) = delete;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // Says that only the first bytes are used, and will be: size() is so much from now on. For memory
  // that is not published yet.
  void trim(size_t size) { size_ = size; }

  // Maps the pages of a file with the same bytes over this memory, whose bytes are final. False
  // when mapping fails: the private copy stays in use.
  bool adoptCopy(const memory::Mapping& copy);
  // Does the same with the published segment, unless adoptCopy() has mapped its file already.
  void adopt(cache::SegmentRef published);
  // Whether pages of the file behind this memory were lost, and read as zeros, since the last
  // repair().
  bool hasLosses() const;
  // True for the first caller, and after a failure for the next one, so that models that share the
  // segment do not all write it. False for a segment that comes from the store.
  bool claimPublication() { return !isClaimed_.exchange(true); }
  void giveUpPublication() { isClaimed_ = false; }
  // Null while the segment is not published, and after repair().
  cache::SegmentRef published() const;
  // Whether the bytes have the digest that names them in the store. Reads all of them; true where
  // the segment is not published.
  bool equalsItsKey() const;

  // Replaces wrong bytes while kernels read them: `write` gets a copy of all bytes and puts the
  // right ones in their places. From then on the memory is private and may be published again.
  // Error: kOutOfMemory, or that of `write`; the memory is as before.
  Status repair(const std::function<Status(uint8_t* bytes)>& write);
  // How often that was. Whoever finds no losses after lossCount() has changed finds a higher count.
  uint64_t repairs() const { return repairs_; }
  // Of all segments of this process.
  static uint64_t allRepairs();

 private:
  PackedSegment() = default;

  memory::Mapping memory_;
  cache::SegmentRef origin_;  // owns the mapping at data_ where memory_ does not
  memory::WatchedPages watched_;
  uint8_t* data_ = nullptr;
  std::atomic<size_t> size_ = 0;
  std::atomic<bool> isClaimed_ = false;
  bool wasLost_ = false;  // before `watched_` began
  std::atomic<uint64_t> repairs_ = 0;
  mutable base::Mutex mutex_;
  const uint8_t* copy_ = nullptr;  // the mapping that adoptCopy() took the pages of
  cache::SegmentRef published_;
};

}  // namespace hearth::cpu
