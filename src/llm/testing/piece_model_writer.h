// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "llm/sentence_piece_model.h"

namespace hearth::llm {

// Writes a model of SentencePiece, as SentencePieceModel::read() takes it.
class PieceModelWriter {
 public:
  explicit PieceModelWriter(SentencePieceModel::Kind kind);

  // The next piece.
  PieceModelWriter& add(std::string_view text, float score, PieceType type = PieceType::kNormal);
  // <0x00> to <0xFF>, and their use for unknown text.
  PieceModelWriter& addBytes();
  // What a text gets in front of it, and what becomes of its spaces.
  PieceModelWriter& setNormalizer(bool hasDummyPrefix, bool removesExtraSpaces);
  // A field of the message's trainer or normalizer that is a number.
  PieceModelWriter& setTrainerField(uint32_t field, uint64_t value);
  PieceModelWriter& setNormalizerField(uint32_t field, std::string_view bytes);

  std::string write() const;

 private:
  std::string pieces_;
  std::string trainer_;
  std::string normalizer_;
};

}  // namespace hearth::llm
