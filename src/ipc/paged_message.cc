// SPDX-License-Identifier: Apache-2.0
#include "ipc/paged_message.h"

#include <algorithm>
#include <new>
#include <utility>

namespace hearth::ipc {

kj::ArrayPtr<capnp::word> PagedMessage::allocateSegment(capnp::uint minimumSize) {
  if (!isFirstUsed_ && minimumSize <= kFirstWords) {
    isFirstUsed_ = true;
    return kj::arrayPtr(first_.data(), first_.size());
  }
  isFirstUsed_ = true;
  const size_t bytes = std::max(nextBytes_, minimumSize * sizeof(capnp::word));
  auto pages = memory::Mapping::anonymous(bytes);
  if (!pages) throw std::bad_alloc();
  pages_.push_back(std::move(*pages));
  // Few segments for long messages, of which only what is used becomes memory.
  nextBytes_ = 2 * bytes;
  return kj::arrayPtr(reinterpret_cast<capnp::word*>(pages_.back().data()),
                      bytes / sizeof(capnp::word));
}

}  // namespace hearth::ipc
