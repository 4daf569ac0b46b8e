// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/packed_segment.h"

#include <utility>

#include "base/log.h"

namespace hearth::cpu {

Result<std::shared_ptr<PackedSegment>> PackedSegment::allocate(size_t size) {
  std::shared_ptr<PackedSegment> segment(new PackedSegment);
  HEARTH_ASSIGN(segment->memory_, memory::Mapping::anonymous(size));
  segment->data_ = segment->memory_.data();
  segment->size_ = size;
  return segment;
}

PackedSegment::PackedSegment(cache::SegmentRef segment)
    : data_(const_cast<uint8_t*>(segment->data())),
      size_(segment->size()),
      published_(std::move(segment)) {}

void PackedSegment::adopt(cache::SegmentRef published) {
  if (published->size() <= size_ && published->data() != data_) {
    if (const Status mapped = published->mapOver(data_); !mapped)
      base::logInfo("{}", mapped.error().toString());
  }
  const std::lock_guard lock(mutex_);
  published_ = std::move(published);
}

cache::SegmentRef PackedSegment::published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

}  // namespace hearth::cpu
