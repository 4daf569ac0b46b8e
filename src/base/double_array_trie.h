// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hearth::base {

// A trie of byte strings with a number for each, in the double array of the library Darts. A view
// of its nodes, 32-bit little-endian numbers at any address. Any bytes are safe to search.
class DoubleArrayTrie {
 public:
  struct Match {
    uint32_t value = 0;
    size_t size = 0;  // in bytes
  };

  DoubleArrayTrie() = default;
  // `count` nodes from `nodes` on.
  DoubleArrayTrie(const uint8_t* nodes, size_t count) : nodes_(nodes), count_(count) {}

  // Calls visit(Match) for each string that `text` begins with, the shortest first, up to 4,096
  // bytes: a damaged trie may have circles.
  template <typename Visit>
  void forEachPrefix(std::string_view text, const Visit& visit) const {
    if (count_ == 0) return;
    size_t position = offsetOf(node(0));
    for (size_t i = 0; i < std::min(text.size(), kLongest); ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      position ^= byte;
      if (position >= count_ || labelOf(node(position)) != byte) return;
      const uint32_t found = node(position);
      position ^= offsetOf(found);
      if (position >= count_) return;
      if ((found & kHasValue) != 0) visit(Match{node(position) & kValue, i + 1});
    }
  }

 private:
  // A node with a value has the uppermost bit, so that it is no label. The others have a label in
  // the lowest byte, and in the upper bits the distance to their children, in units of 1 or 256.
  static constexpr size_t kLongest = 4096;
  static constexpr uint32_t kHasValue = 0x100;
  static constexpr uint32_t kValue = 0x7fffffff;
  static uint32_t labelOf(uint32_t node) { return node & 0x800000ffu; }
  static uint32_t offsetOf(uint32_t node) { return (node >> 10) << ((node & 0x200u) >> 6); }
  uint32_t node(size_t index) const {
    uint32_t value = 0;
    std::memcpy(&value, nodes_ + index * sizeof value, sizeof value);
    return value;
  }

  const uint8_t* nodes_ = nullptr;
  size_t count_ = 0;
};

}  // namespace hearth::base
