// SPDX-License-Identifier: Apache-2.0
// Models of SentencePiece as text operators of TFLite hold them: a FlatBuffer EncoderConfig (of
// tflite-support and tensorflow-text) with a trie of pieces, their scores, and a trie of what is
// replaced before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::ops {

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
  uint32_t node(size_t index) const;

  const uint8_t* nodes_ = nullptr;
  size_t count_ = 0;
};

// A view of a model's bytes, which have to outlive it. Thread-safe.
class SentencepieceModel {
 public:
  struct Marks {
    bool hasBegin = false;
    bool hasEnd = false;
    bool isReversed = false;
  };

  // Of the address of a model's bytes.
  static constexpr size_t kAlignment = 4;

  // Looks at the structure alone; what the tries and numbers mean is checked where they are used.
  // kBadData: the bytes are no such model, or not aligned.
  static Result<SentencepieceModel> read(std::span<const uint8_t> bytes);

  // The numbers of the pieces of the most probable segmentation of a text, of any bytes, which is
  // normalised first. kBadData: a piece of the model has no score, or an error of normalize().
  Result<std::vector<int32_t>> encode(std::string_view text, const Marks& marks) const;

  // What is segmented: the model's replacements, single spaces, and U+2581 in place of spaces, as
  // the model asks for. kBadData: the replacements make the text 64 times as long.
  Result<std::string> normalize(std::string_view text) const;

 private:
  Result<std::vector<int32_t>> bestPieces(std::string_view text) const;
  Result<std::string> replacePrefixes(std::string_view text) const;

  int32_t begin_ = 0;
  int32_t end_ = 0;
  std::optional<int32_t> unknown_;
  float unknownScore_ = 0;
  int32_t firstCode_ = 0;
  DoubleArrayTrie pieces_;
  const uint8_t* scores_ = nullptr;
  size_t scoreCount_ = 0;
  bool removesSpaces_ = false;
  bool addsSpace_ = false;
  bool marksSpaces_ = false;
  DoubleArrayTrie prefixes_;
  std::string_view replacements_;
};

}  // namespace hearth::ops
