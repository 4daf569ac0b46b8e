// SPDX-License-Identifier: Apache-2.0
#include "llm/sentence_piece_tokenizer.h"

#include <cstdlib>
#include <memory>

#include "llm/byte_level.h"
#include "llm/piece_normalizer.h"
#include "llm/piece_path.h"
#include "llm/utf8.h"

namespace hearth::llm {
Status SentencePieceTokenizer::encodePart(std::string_view text, SpecialTokens special,
                                          bool isFirst, std::vector<int32_t>* tokens) const {
  HEARTH_ASSIGN(const std::string normalized, normalizePieces(table_, text, special, isFirst));
  const auto pieces = table_.kind() == SentencePieceModel::Kind::kUnigram
                          ? findBestPath(table_, normalized, special)
                          : mergePieces(table_, normalized, special);
  bool isBehindUnknown = false;
  for (const FoundPiece& piece : pieces) {
    const bool isUnknown = piece.id == table_.unknown();
    if (isUnknown && table_.hasByteFallback()) {
      for (const char byte : piece.text)
        tokens->push_back(table_.byteToken(static_cast<uint8_t>(byte)));
    } else if (!isUnknown || !isBehindUnknown) {
      // A run of unknown characters is one token.
      tokens->push_back(piece.id);
    }
    isBehindUnknown = isUnknown;
  }
  return {};
}

Result<std::vector<int32_t>> SentencePieceTokenizer::encode(std::string_view text,
                                                            SpecialTokens special,
                                                            bool isFirst) const {
  std::vector<int32_t> tokens;
  size_t done = 0;
  const auto encodeTo = [&](size_t end) {
    // A control piece that a text begins with, as <bos>, is not part of it.
    const bool isStart = done == 0 || (tokens.size() == 1 && isSpecial(tokens[0]));
    return encodePart(text.substr(done, end - done), special, isFirst && isStart, &tokens);
  };
  if (special == SpecialTokens::kAreParsed) {
    for (size_t at = 0; const auto found = findSpecial(text, at);) {
      at = found->first + found->second;
      const int32_t id = table_.special().find(text.substr(found->first, found->second));
      // User-defined pieces are found with the others.
      if (!table_.isKnown(id) || table_.type(id) != PieceType::kControl) continue;
      HEARTH_TRY(encodeTo(found->first));
      tokens.push_back(id);
      done = at;
    }
  }
  HEARTH_TRY(encodeTo(text.size()));
  return tokens;
}

void SentencePieceTokenizer::appendBytes(int32_t token, bool* isFirst, std::string* bytes) const {
  if (!table_.isKnown(token)) {
    *isFirst = false;
    bytes->append(kReplacementText);
    return;
  }
  if (isSpecial(token)) return;
  const bool wasFirst = std::exchange(*isFirst, false);
  std::string_view text = table_.text(token);
  if (table_.type(token) == PieceType::kUnknown) {
    bytes->append(table_.unknownSurface());
    return;
  }
  if (table_.type(token) == PieceType::kByte) {
    if (const auto byte = byteOfToken(text)) bytes->push_back(static_cast<char>(*byte));
    return;
  }
  if (wasFirst && (table_.hasDummyPrefix() || table_.removesExtraSpaces())) {
    if (text.starts_with(kEscapedSpace)) text.remove_prefix(kEscapedSpace.size());
    *isFirst = table_.removesExtraSpaces() && text.empty();
  }
  while (!text.empty()) {
    const bool isSpace = text.starts_with(kEscapedSpace);
    bytes->push_back(isSpace ? ' ' : text[0]);
    text.remove_prefix(isSpace ? kEscapedSpace.size() : 1);
  }
}

std::optional<std::pair<size_t, size_t>> SentencePieceTokenizer::findSpecial(std::string_view text,
                                                                             size_t begin) const {
  for (size_t at = begin; at < text.size(); ++at) {
    const size_t size = SentencePieceTable::longestMatch(table_.special(), text, at).size;
    if (size > 0) return std::pair(at, size);
  }
  return std::nullopt;
}

std::optional<int32_t> SentencePieceTokenizer::specialToken(std::string_view text) const {
  const int32_t id = table_.special().find(text);
  return table_.isKnown(id) ? std::optional(id) : std::nullopt;
}

std::string_view SentencePieceTokenizer::text(int32_t token) const {
  return table_.isKnown(token) ? table_.text(token) : std::string_view();
}

std::string_view SentencePieceTokenizer::kind() const {
  return table_.kind() == SentencePieceModel::Kind::kUnigram ? "SentencePiece, unigram"
                                                             : "SentencePiece, byte pairs";
}

Result<Tokenizer> SentencePieceTokenizer::ofTable(std::span<const uint8_t> bytes,
                                                  std::shared_ptr<const void> owner) {
  HEARTH_ASSIGN(SentencePieceTable table, SentencePieceTable::open(bytes, std::move(owner)));
  return Tokenizer(std::make_shared<const SentencePieceTokenizer>(std::move(table)));
}

}  // namespace hearth::llm
