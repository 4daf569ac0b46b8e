// SPDX-License-Identifier: Apache-2.0
// The two ways in which SentencePiece divides a normalised text into pieces.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "llm/sentence_piece_table.h"
#include "llm/tokenizer_model.h"

namespace hearth::llm {

// A part of a text, and its number; the unknown piece's where it is no piece.
struct FoundPiece {
  std::string_view text;
  int32_t id = 0;
};

// The division with the highest sum of scores (Kudo, Subword Regularization, 2018), for tables of
// the kind kUnigram. Sums are rounded as SentencePiece rounds them, from the text's begin on. Takes
// time in proportion to the text times the longest piece in it.
std::vector<FoundPiece> findBestPath(const SentencePieceTable& table, std::string_view text,
                                     SpecialTokens special);

// What is left when neighbours have been merged, those first whose piece has the highest score, for
// tables of the kind kBytePairs. Takes time in proportion to n log n for a word of n characters; a
// table that has pieces of several words makes one of the text.
std::vector<FoundPiece> mergePieces(const SentencePieceTable& table, std::string_view text,
                                    SpecialTokens special);

}  // namespace hearth::llm
