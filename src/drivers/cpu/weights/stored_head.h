// SPDX-License-Identifier: Apache-2.0
// The beginning of what this driver stores: in plans, and in the cache files of NNAPI's clients.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/result.h"

namespace hearth::cpu {

static_assert(std::endian::native == std::endian::little, "The formats are little endian.");

// Reads a head, which begins with `char magic[8]` and `uint32_t version`. kBadData when there are
// fewer bytes, or others in these two; the message calls the whole `name`.
template <typename Head>
Result<Head> readHead(std::span<const uint8_t> bytes, const char (&magic)[8], uint32_t version,
                      const char* name) {
  static_assert(std::is_trivially_copyable_v<Head>);
  Head head;
  if (bytes.size() < sizeof head)
    return fail(ErrorCode::kBadData, "{} has {} bytes, fewer than its head.", name, bytes.size());
  std::memcpy(&head, bytes.data(), sizeof head);
  if (std::memcmp(head.magic, magic, sizeof magic) != 0 || head.version != version)
    return fail(ErrorCode::kBadData, "{} is not of version {}.", name, version);
  return head;
}

}  // namespace hearth::cpu
