// SPDX-License-Identifier: Apache-2.0
// What a block of the prefix store says of itself: a head of 256 bytes behind its data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/object/store_failure.h"
#include "cache/object/store_key.h"

namespace hearth::cache {

// Names what a model has computed of a text's beginning. Whoever makes it takes the SHA-256 of all
// that the bytes depend on, the key of the preceding block among them.
using PrefixKey = StoreKey<struct PrefixKind>;

// Value type.
struct PrefixBlock {
  PrefixKey key;
  PrefixKey predecessor;  // of a text's first block, a key of which there is no block
  uint32_t position = 0;  // of its first token in the text
  uint32_t tokens = 0;
  std::string model;  // its file's name, for people; what is too long is cut off

  bool operator==(const PrefixBlock&) const = default;
};

inline constexpr size_t kPrefixHeadBytes = 256;

// The head of a block; the key is not in it.
std::vector<uint8_t> makePrefixHead(const PrefixBlock& block);
// Parses a head; the result has no key. Any defect is kCorrupt. Never reads outside `head`.
StoreResult<PrefixBlock> parsePrefixHead(std::span<const uint8_t> head);

}  // namespace hearth::cache
