// SPDX-License-Identifier: Apache-2.0
// The tokenizer that a `tokenizer.json` of Hugging Face with the model BPE describes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "llm/added_tokens.h"
#include "llm/byte_pair_table.h"
#include "llm/byte_pairs.h"
#include "llm/normalizer.h"
#include "llm/pre_tokenizer.h"
#include "llm/tokenizer.h"
#include "llm/tokenizer_model.h"

namespace hearth::llm {

class BytePairTokenizer : public TokenizerModel {
 public:
  // Uses the bytes of a BytePairTable. Errors: those of BytePairTable::open(); kUnsupported for
  // steps that are not known; kBadData for wrong ones.
  static Result<Tokenizer> ofTable(std::span<const uint8_t> bytes,
                                   std::shared_ptr<const void> owner);

  Result<std::vector<int32_t>> encode(std::string_view text, SpecialTokens special,
                                      bool isFirst) const override;
  void appendBytes(int32_t token, bool* isFirst, std::string* bytes) const override;
  std::optional<std::pair<size_t, size_t>> findSpecial(std::string_view text,
                                                       size_t begin) const override;
  std::optional<int32_t> specialToken(std::string_view text) const override;
  bool isSpecial(int32_t token) const override;
  std::string_view text(int32_t token) const override { return table_.text(token); }
  size_t size() const override { return table_.size(); }
  std::string_view kind() const override { return "byte pairs"; }

 private:
  friend class TokenizerJson;

  const AddedToken* added(int32_t token) const;
  Status encodeWords(std::string_view text, bool isFirst, std::vector<int32_t>* tokens) const;
  Status encodeNormalized(std::string_view text, bool isFirst, SpecialTokens special,
                          std::vector<int32_t>* tokens) const;

  BytePairTable table_;
  BytePairs pairs_;
  AddedTokens addedPlain_;       // looked for in the text itself
  AddedTokens addedNormalized_;  // looked for in the normalised text
  std::vector<Normalizer> normalizers_;
  std::vector<PreTokenizer> preTokenizers_;
  // How tokens are written back as text.
  bool isByteLevel_ = false;
  bool hasByteTokens_ = false;        // <0x00> to <0xFF> stand for bytes
  bool isFirstSpaceDropped_ = false;  // of a text
  std::string space_;                 // what stands for a space; empty = a space
};

}  // namespace hearth::llm
