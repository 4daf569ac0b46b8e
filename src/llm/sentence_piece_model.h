// SPDX-License-Identifier: Apache-2.0
// The file of a SentencePiece tokenizer: its message ModelProto
// (sentencepiece_model.proto of google/sentencepiece).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

// U+2581, which stands for a space in pieces.
inline constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";

// As the file numbers them.
enum class PieceType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// What the file says; its texts lie in the message, which must outlive it.
struct SentencePieceModel {
  static constexpr size_t kMaxPieces = size_t{1} << 21;
  // A text is compared with pieces from each of its characters on, as far as the longest one.
  static constexpr size_t kMaxPieceBytes = 512;

  enum class Kind : uint32_t { kUnigram = 1, kBytePairs = 2 };

  struct Piece {
    std::string_view text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };

  std::vector<Piece> pieces;  // by number
  Kind kind = Kind::kUnigram;
  bool hasByteFallback = false;
  bool isSpaceSuffix = false;      // words end with their space in place of beginning with it
  bool hasDummyPrefix = true;      // a text gets a space in front of it
  bool removesExtraSpaces = true;  // at both ends, and all but one within
  bool escapesSpaces = true;       // as U+2581
  std::string_view unknownSurface = " \xE2\x81\x87 ";  // what an unknown piece is decoded to
  // Rules of replacement, empty for none: the units of a double array (each 4 bytes, little-endian)
  // whose values are offsets into texts that a zero byte ends.
  std::span<const uint8_t> ruleUnits;
  std::string_view ruleTexts;

  // Errors: kBadData for a damaged message; for pieces that are empty, too long, twice there, or
  // have a score that is no number; where not just one piece is the unknown one; kUnsupported for a
  // model of whole words or single characters, or one that changes the text that it decodes.
  static Result<SentencePieceModel> read(std::span<const uint8_t> message);
};

}  // namespace hearth::llm
