// SPDX-License-Identifier: Apache-2.0
#include "cache/identity/pool_source.h"

#include <fcntl.h>

#include <utility>

namespace hearth::cache {
namespace {

// Whether the pool's file may be mapped for writing. Only the first write through such a mapping
// changes the file's times, and only when the kernel gets to it.
bool mayBeWritten(const memory::Pool& pool) {
  const int flags = ::fcntl(pool.fd(), F_GETFL);
  return pool.writable() || flags < 0 || (flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace

ContentSource sourceOf(const memory::Pool& pool, std::vector<ContentGap> gaps) {
  return ContentSource::of(pool.fd(), pool.offset(), pool.size(), mayBeWritten(pool),
                           std::move(gaps));
}

}  // namespace hearth::cache
