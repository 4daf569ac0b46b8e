// SPDX-License-Identifier: Apache-2.0
// From text to the numbers of tokens and back, as a `tokenizer.json` of Hugging Face says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "llm/added_tokens.h"
#include "llm/byte_pairs.h"
#include "llm/normalizer.h"
#include "llm/pre_tokenizer.h"
#include "llm/vocabulary.h"

namespace hearth::llm {

// Whether the text of special tokens stands for them. Text of users should not have that power.
enum class SpecialTokens { kAreText, kAreParsed };

// Immutable; thread-safe.
class Tokenizer {
 public:
  // The most text that is encoded at once.
  static constexpr size_t kMaxTextBytes = size_t{64} << 20;

  // Reads a `tokenizer.json`. Errors: kBadData for a damaged one, kUnsupported for one with a model
  // other than BPE or with steps that are not known.
  static Result<Tokenizer> fromJson(std::string_view json);

  // Adds no token at the begin or the end. Errors, all kBadData: the text is no UTF-8, is too
  // long, or has a character without a token.
  Result<std::vector<int32_t>> encode(std::string_view text, SpecialTokens special) const;

  // The text of tokens, with or without that of special ones. Bytes that are no UTF-8 become
  // U+FFFD, as do numbers of no token.
  std::string decode(std::span<const int32_t> tokens, bool hasSpecial = false) const;

  // Appends the bytes that one token stands for, a part of a character perhaps; nothing for a
  // special token. `isFirst`: no text stands before it.
  void appendBytes(int32_t token, bool isFirst, std::string* bytes) const;

  // Where the first special token is written in the text from `begin` on, and its size in bytes.
  std::optional<std::pair<size_t, size_t>> findSpecial(std::string_view text, size_t begin) const;

  // The special token with this text.
  std::optional<int32_t> specialToken(std::string_view text) const;
  bool isSpecial(int32_t token) const;
  // The token's text as the file has it.
  std::string_view text(int32_t token) const;
  // One more than the largest number of a token.
  size_t size() const { return vocabulary_.size(); }

 private:
  friend class TokenizerJson;

  const AddedToken* added(int32_t token) const;
  Status encodeWords(std::string_view text, bool isFirst, std::vector<int32_t>* tokens) const;
  Status encodeNormalized(std::string_view text, bool isFirst, SpecialTokens special,
                          std::vector<int32_t>* tokens) const;

  Vocabulary vocabulary_;
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
