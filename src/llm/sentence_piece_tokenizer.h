// SPDX-License-Identifier: Apache-2.0
// The tokenizer that a SentencePiece model describes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "llm/sentence_piece_table.h"
#include "llm/tokenizer.h"
#include "llm/tokenizer_model.h"

namespace hearth::llm {

// Gives the tokens that the library SentencePiece gives, user-defined pieces among them. Where
// special tokens are text, those of them that are marks of the model are divided as any text is;
// where they are parsed, control pieces are, too.
class SentencePieceTokenizer : public TokenizerModel {
 public:
  // Uses the bytes of a SentencePieceTable. Errors: those of SentencePieceTable::open().
  static Result<Tokenizer> ofTable(std::span<const uint8_t> bytes,
                                   std::shared_ptr<const void> owner);

  explicit SentencePieceTokenizer(SentencePieceTable table) : table_(std::move(table)) {}

  Result<std::vector<int32_t>> encode(std::string_view text, SpecialTokens special,
                                      bool isFirst) const override;
  void appendBytes(int32_t token, bool* isFirst, std::string* bytes) const override;
  std::optional<std::pair<size_t, size_t>> findSpecial(std::string_view text,
                                                       size_t begin) const override;
  std::optional<int32_t> specialToken(std::string_view text) const override;
  bool isSpecial(int32_t token) const override { return table_.isSpecial(token); }
  std::string_view text(int32_t token) const override;
  size_t size() const override { return table_.size(); }
  std::string_view kind() const override;

 private:
  Status encodePart(std::string_view text, SpecialTokens special, bool isFirst,
                    std::vector<int32_t>* tokens) const;

  SentencePieceTable table_;
};

}  // namespace hearth::llm
