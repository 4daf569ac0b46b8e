// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cache/store/segment_writer.h"
#include "drivers/cpu/weights/packed_segment.h"
#include "memory/mapping.h"

namespace hearth::cpu {

// A large packing that is made in parts and written into the store meanwhile, so that no more than
// one part and a huge page of it lie in private memory. Not thread-safe.
class PartedSegment {
 public:
  // `buffer` is memory that an earlier one used (takeBuffer()), or empty.
  PartedSegment(std::unique_ptr<cache::SegmentWriter> writer, size_t size, memory::Mapping buffer)
      : writer_(std::move(writer)), size_(size), buffer_(std::move(buffer)) {}

  // Zeroed memory for the next part, 64-byte aligned if all parts have multiples of that; valid
  // until the next call. Null where there is no memory or the parts get longer than the segment.
  uint8_t* reserve(size_t size);
  // The part in the memory that reserve() returned last is packed. False where it cannot be
  // written; this is then useless.
  bool commit();

  // When all parts are packed: memory with their bytes, which are pages of the file. Null on
  // failure.
  std::shared_ptr<PackedSegment> finish();
  // After finish(), for PublishRequest::written.
  std::unique_ptr<cache::SegmentWriter> takeWriter() { return std::move(writer_); }
  memory::Mapping takeBuffer() { return std::move(buffer_); }

 private:
  bool write(size_t size);

  std::unique_ptr<cache::SegmentWriter> writer_;
  const size_t size_;
  memory::Mapping buffer_;  // begins with the bytes that are not written yet
  size_t waiting_ = 0;      // the number of these bytes
  size_t reserved_ = 0;     // of the part in progress, behind them
  size_t written_ = 0;
};

}  // namespace hearth::cpu
