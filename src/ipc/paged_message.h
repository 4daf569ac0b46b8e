// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <capnp/message.h>

#include <array>
#include <cstddef>
#include <vector>

#include "memory/mapping.h"

namespace hearth::ipc {

// A message that is being built. A short one lies in this object, a longer one in pages that go
// with it: on the heap it would leave so much free memory, in each of many clients.
class PagedMessage final : public capnp::MessageBuilder {
 public:
  PagedMessage() = default;
  PagedMessage(const PagedMessage&) = delete;
  PagedMessage& operator=(const PagedMessage&) = delete;

  // Throws std::bad_alloc when there is no memory.
  kj::ArrayPtr<capnp::word> allocateSegment(capnp::uint minimumSize) override;

 private:
  static constexpr size_t kFirstWords = 128;

  std::array<capnp::word, kFirstWords> first_{};
  bool isFirstUsed_ = false;
  size_t nextBytes_ = size_t{64} << 10;
  std::vector<memory::Mapping> pages_;
};

}  // namespace hearth::ipc
