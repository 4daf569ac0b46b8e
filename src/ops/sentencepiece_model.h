// SPDX-License-Identifier: Apache-2.0
// Models of SentencePiece as text operators of TFLite hold them: a FlatBuffer EncoderConfig (of
// tflite-support and tensorflow-text) with a trie of pieces, their scores, and a trie of what is
// replaced before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/double_array_trie.h"
#include "base/result.h"

namespace hearth::ops {

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
  base::DoubleArrayTrie pieces_;
  const uint8_t* scores_ = nullptr;
  size_t scoreCount_ = 0;
  bool removesSpaces_ = false;
  bool addsSpace_ = false;
  bool marksSpaces_ = false;
  base::DoubleArrayTrie prefixes_;
  std::string_view replacements_;
};

}  // namespace hearth::ops
