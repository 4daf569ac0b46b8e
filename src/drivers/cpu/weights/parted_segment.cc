// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/parted_segment.h"

#include <cstring>
#include <utility>

#include "base/log.h"

namespace hearth::cpu {

uint8_t* PartedSegment::reserve(size_t size) {
  if (size > size_ - written_ - waiting_) return nullptr;
  if (buffer_.size() < waiting_ + size) {
    auto larger = memory::Mapping::anonymous(cache::SegmentWriter::kHugePage + size);
    if (!larger) return nullptr;
    if (waiting_ != 0) std::memcpy(larger->data(), buffer_.data(), waiting_);
    buffer_ = std::move(*larger);
  }
  reserved_ = size;
  // Packing functions skip what fills up a panel.
  std::memset(buffer_.data() + waiting_, 0, size);
  return buffer_.data() + waiting_;
}

bool PartedSegment::commit() {
  waiting_ += std::exchange(reserved_, 0);
  return write(waiting_ / cache::SegmentWriter::kHugePage * cache::SegmentWriter::kHugePage);
}

// Writes the first bytes that wait.
bool PartedSegment::write(size_t size) {
  if (size == 0) return true;
  if (const auto written = writer_->append({buffer_.data(), size}); !written) {
    base::logInfo("Packed weights are not written in parts. {}", written.error().message);
    return false;
  }
  written_ += size;
  waiting_ -= size;
  std::memmove(buffer_.data(), buffer_.data() + size, waiting_);
  return true;
}

std::shared_ptr<PackedSegment> PartedSegment::finish() {
  if (written_ + waiting_ != size_ || !write(waiting_)) return nullptr;
  const auto mapped = writer_->map();
  if (!mapped) return nullptr;
  // Untouched addresses, over which the file is mapped.
  auto segment = PackedSegment::allocate(size_);
  if (!segment || !(*segment)->adoptCopy(**mapped)) return nullptr;
  return std::move(*segment);
}

}  // namespace hearth::cpu
