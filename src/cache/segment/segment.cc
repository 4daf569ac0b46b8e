// SPDX-License-Identifier: Apache-2.0
#include "cache/segment/segment.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/format.h"

namespace hearth::cache {
namespace {

size_t wholePages(size_t size) {
  static const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

}  // namespace

Status layOver(const memory::Mapping& file, void* address) {
  // A length of 0 makes mremap duplicate a shared mapping instead of moving it, so that no
  // descriptor has to be kept for this.
  void* const result =
      ::mremap(file.data(), 0, wholePages(file.size()), MREMAP_MAYMOVE | MREMAP_FIXED, address);
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
  ::madvise(const_cast<uint8_t*>(data()) + offset, wholePages(size), MADV_POPULATE_READ);
}

bool Segment::isResident() const {
  if (mapping_.size() == 0) return true;
  unsigned char page = 0;
  return ::mincore(const_cast<uint8_t*>(data()), 1, &page) != 0 || (page & 1) != 0;
}

void Segment::expectDisk() const {
  if (mapping_.size() == 0) return;
  ::madvise(const_cast<uint8_t*>(data()), wholePages(size()), MADV_HUGEPAGE);
}

}  // namespace hearth::cache
