// SPDX-License-Identifier: Apache-2.0
// What a SentencePiece tokenizer does to a text before it divides it into pieces.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "llm/sentence_piece_table.h"
#include "llm/tokenizer_model.h"

namespace hearth::llm {

// The longest user-defined piece that `text` begins with, from `begin` on: normalization and
// byte-pair merges leave it as it is. Pieces that are special are passed over where these are text.
PieceTrie::Match longestUserDefined(const SentencePieceTable& table, std::string_view text,
                                    size_t begin, SpecialTokens special);

// `text` is UTF-8; the result is, too, if the rules of the table are sound. `isFirst`: the text
// gets the space that the tokenizer puts in front of one. Error: kBadData where the text grows to
// more than 16 times its size.
Result<std::string> normalizePieces(const SentencePieceTable& table, std::string_view text,
                                    SpecialTokens special, bool isFirst);

}  // namespace hearth::llm
