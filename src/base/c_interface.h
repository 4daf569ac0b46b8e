// SPDX-License-Identifier: Apache-2.0
// What the functions of our C interfaces do with arguments: null pointers, and structures that
// begin with their size, so that either side may be newer than the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/result.h"

namespace hearth::base {

// A kUnexpectedNull error that names the argument.
inline std::unexpected<Error> nullArgument(const char* name) {
  return fail(ErrorCode::kUnexpectedNull, "The argument {} is a null pointer.", name);
}

// Fills a structure that begins with the caller's `size`: writes the bytes that both sides know and
// sets `size` to their number. kBadData for a size that was not set.
template <typename Info>
Status fillSized(Info* to, Info from) {
  if (to == nullptr) return nullArgument("info");
  if (to->size < sizeof(to->size))
    return fail(ErrorCode::kBadData, "The structure's size is {}; it is not set.", to->size);
  from.size = std::min(to->size, sizeof(Info));
  std::memcpy(to, &from, from.size);
  return {};
}

// An upper bound of the sizes of all versions of all structures: a larger `size` was not set.
inline constexpr size_t kMostStructureBytes = 4096;

// Reads the bytes that both sides know of such a structure into `to`, which holds the default
// values. Bytes that only the caller knows must be zero. `least` is the size of the first version.
template <typename Info>
Status readSized(const Info& from, size_t least, const char* what, Info* to) {
  if (from.size < least)
    return fail(ErrorCode::kBadData, "The {} have size {}; the least is {}.", what, from.size,
                least);
  if (from.size > kMostStructureBytes)
    return fail(ErrorCode::kBadData, "The {} have size {}, above the most, {}; it is not set.",
                what, from.size, kMostStructureBytes);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&from);
  const size_t known = std::min(from.size, sizeof(Info));
  if (std::any_of(bytes + known, bytes + from.size, [](uint8_t byte) { return byte != 0; }))
    return fail(ErrorCode::kBadData,
                "The {} have size {} and ask for something behind byte {}, of which this library "
                "does not know.",
                what, from.size, known);
  std::memcpy(to, bytes, known);
  to->size = sizeof(Info);
  return {};
}

}  // namespace hearth::base
