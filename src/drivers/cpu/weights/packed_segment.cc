// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packed_segment.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/fault.h"
#include "base/format.h"
#include "base/log.h"
#include "cache/identity/content_hash.h"
#include "memory/page_size.h"

namespace hearth::cpu {
namespace {

constinit std::atomic<uint64_t> repairsOfAll = 0;
// Held while bytes are copied, corrected and put in place: models may have mapped one segment, each
// with a PackedSegment of its own, and would undo each other's repairs. Who asks for losses waits
// until it is known whether the repair succeeds.
constinit base::Mutex repairMutex;

}  // namespace

uint64_t PackedSegment::allRepairs() {
  return repairsOfAll;
}

Result<std::shared_ptr<PackedSegment>> PackedSegment::allocate(size_t size, size_t ordinary) {
  std::shared_ptr<PackedSegment> segment(new PackedSegment);
  HEARTH_ASSIGN(segment->memory_, memory::Mapping::anonymous(size, ordinary));
  segment->data_ = segment->memory_.data();
  segment->size_ = size;
  segment->watched_ = memory::WatchedPages(segment->data_, size, memory::WatchedPages::Of::kMemory);
  return segment;
}

PackedSegment::PackedSegment(cache::SegmentRef segment)
    : origin_(segment),
      watched_(segment->data(), segment->size(),
               segment->isMapped() ? memory::WatchedPages::Of::kFile
                                   : memory::WatchedPages::Of::kMemory),
      data_(const_cast<uint8_t*>(segment->data())),
      size_(segment->size()),
      isClaimed_(true),
      published_(std::move(segment)) {
  wasLost_ = published_->hasLosses();
}

bool PackedSegment::adoptCopy(const memory::Mapping& copy) {
  if (copy.size() > size_) return false;
  watched_.becomeFile();
  if (const Status mapped = cache::layOver(copy, data_); !mapped) {
    base::logInfo("{}", mapped.error().toString());
    return false;
  }
  const std::lock_guard lock(mutex_);
  copy_ = copy.data();
  return true;
}

void PackedSegment::adopt(cache::SegmentRef published) {
  const std::lock_guard lock(mutex_);
  // The address is compared only once: another mapping may have it later.
  const uint8_t* const copy = std::exchange(copy_, nullptr);
  if (published->size() <= size_ && published->data() != data_ && published->data() != copy) {
    if (published->isMapped()) watched_.becomeFile();
    if (const Status mapped = published->mapOver(data_); !mapped)
      base::logInfo("{}", mapped.error().toString());
  }
  published_ = std::move(published);
}

Status PackedSegment::repair(const std::function<Status(uint8_t* bytes)>& write) {
  const size_t size = size_;
  // In a bundle of a machine with smaller pages they begin behind other bytes, which nobody reads
  // here.
  uint8_t* const firstPage = memory::pageOf(data_);
  const size_t length = memory::pagesOf(data_, size);
  const auto failure = [&] {
    return base::errnoError(errno, base::formatText("Replacing {} bytes of packed weights", size));
  };
  // Anonymous memory and not a file: limits on files are for the host program to use up.
  void* const fresh =
      base::sys::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return std::unexpected(failure());
  auto* const bytes = static_cast<uint8_t*>(fresh) + (data_ - firstPage);
  const std::lock_guard repairing(repairMutex);
  std::memcpy(bytes, data_, size);
  Status written = write(bytes);
  if (written && ::mprotect(fresh, length, PROT_READ) != 0) written = std::unexpected(failure());
  if (written) {
    // Not after the remap: a handler of SIGBUS that comes late puts zeros over the right bytes.
    const bool hadLosses = std::exchange(wasLost_, false) || watched_.hasLosses();
    watched_.forgetLosses();
    // The remap is one step for concurrent readers: each page is either the old or the new one.
    if (::mremap(fresh, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, firstPage) == MAP_FAILED) {
      written = std::unexpected(failure());
      wasLost_ = hadLosses;
    }
  }
  if (!written) {
    ::munmap(fresh, length);
    return written;
  }
  ++repairs_;
  ++repairsOfAll;
  const std::lock_guard lock(mutex_);
  published_ = nullptr;
  isClaimed_ = false;
  return {};
}

bool PackedSegment::hasLosses() const {
  const std::lock_guard repairing(repairMutex);
  return wasLost_ || watched_.hasLosses();
}

bool PackedSegment::equalsItsKey() const {
  const cache::SegmentRef segment = published();
  return segment == nullptr || cache::contentSegmentKey({data_, segment->size()}) == segment->key();
}

cache::SegmentRef PackedSegment::published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

}  // namespace hearth::cpu
