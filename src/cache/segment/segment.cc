// SPDX-License-Identifier: Apache-2.0
#include "cache/segment/segment.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/format.h"
#include "memory/page_size.h"

namespace hearth::cache {

using memory::pageOf;
using memory::pagesOf;

Status layOver(const memory::Mapping& file, void* address) {
  // The kernel refuses what begins in the middle of a page, in a bundle of a machine with smaller
  // ones. A length of 0 makes mremap duplicate a shared mapping instead of moving it, so that no
  // descriptor has to be kept for this.
  void* const result = ::mremap(file.data(), 0, pagesOf(file.data(), file.size()),
                                MREMAP_MAYMOVE | MREMAP_FIXED, address);
  if (result == MAP_FAILED)
    return std::unexpected(base::errnoError(
        errno, base::formatText("Mapping {} bytes of a file over memory", file.size())));
  return {};
}

Status Segment::mapOver(void* address) const {
  if (address == data()) return {};
  if (mapping_.size() == 0)
    return fail(ErrorCode::kUnsupported, "The segment {} is memory of this process.", key_.hex());
  return layOver(mapping_, address);
}

void Segment::prefault(size_t offset, size_t size) const {
  if (mapping_.size() == 0) return;
  const uint8_t* const begin = data() + offset;
  ::madvise(pageOf(begin), pagesOf(begin, size), MADV_POPULATE_READ);
}

bool Segment::isResident() const {
  if (mapping_.size() == 0) return true;
  unsigned char page = 0;
  return ::mincore(pageOf(data()), 1, &page) != 0 || (page & 1) != 0;
}

void Segment::expectDisk() const {
  if (mapping_.size() == 0) return;
  ::madvise(pageOf(data()), pagesOf(data(), size()), MADV_HUGEPAGE);
}

}  // namespace hearth::cache
