// SPDX-License-Identifier: Apache-2.0
// From text to the numbers of tokens and back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "llm/tokenizer_model.h"

namespace hearth::llm {

// Immutable; copies share what they know; thread-safe.
class Tokenizer {
 public:
  // The most text that is encoded at once.
  static constexpr size_t kMaxTextBytes = size_t{64} << 20;

  explicit Tokenizer(std::shared_ptr<const TokenizerModel> model) : model_(std::move(model)) {}

  // The table of a `tokenizer.json` of Hugging Face, or of the model of SentencePiece, the message
  // ModelProto: the tokenizer in the form in which it is used. Errors: kBadData for a damaged one,
  // kUnsupported for a model other than BPE, and for one of SentencePiece with whole words or
  // single characters.
  static Result<std::vector<uint8_t>> tableOfJson(std::string_view json);
  static Result<std::vector<uint8_t>> tableOfSentencePiece(std::span<const uint8_t> message);

  // Uses a table where it lies: `bytes` begin at a multiple of 8 and live as long as `owner`.
  // Errors: kBadData where they are cut off or of another version, any other damage gives other
  // tokens and nothing worse; kUnsupported for a `tokenizer.json` with steps that are not known.
  static Result<Tokenizer> fromTable(std::span<const uint8_t> bytes,
                                     std::shared_ptr<const void> owner);

  // Both in one. Errors: those of both.
  static Result<Tokenizer> fromJson(std::string_view json);
  static Result<Tokenizer> fromSentencePiece(std::span<const uint8_t> message);

  // Adds no token at the begin or the end. `isFirst`: no text stands before it. Errors, all
  // kBadData: the text is no UTF-8, is too long, or has a character without a token.
  Result<std::vector<int32_t>> encode(std::string_view text, SpecialTokens special,
                                      bool isFirst = true) const;

  // The text of tokens, with or without that of special ones. Bytes that are no UTF-8 become
  // U+FFFD, as do numbers of no token. `isFirst`: no text stands before it, so that the space is
  // dropped that some tokenizers put in front of one.
  std::string decode(std::span<const int32_t> tokens, bool hasSpecial = false,
                     bool isFirst = true) const;

  // Appends the bytes that one token stands for, a part of a character perhaps; nothing for a
  // special token. `isFirst`: no text stands before it; it is false when text does behind it.
  void appendBytes(int32_t token, bool* isFirst, std::string* bytes) const {
    model_->appendBytes(token, isFirst, bytes);
  }

  // Where the first special token is written in the text from `begin` on, and its size in bytes.
  std::optional<std::pair<size_t, size_t>> findSpecial(std::string_view text, size_t begin) const {
    return model_->findSpecial(text, begin);
  }

  // The special token with this text.
  std::optional<int32_t> specialToken(std::string_view text) const {
    return model_->specialToken(text);
  }
  bool isSpecial(int32_t token) const { return model_->isSpecial(token); }
  // The token's text as the file has it.
  std::string_view text(int32_t token) const { return model_->text(token); }
  // One more than the largest number of a token.
  size_t size() const { return model_->size(); }
  // For people: "byte pairs", "SentencePiece, unigram".
  std::string_view kind() const { return model_->kind(); }

 private:
  std::shared_ptr<const TokenizerModel> model_;
};

}  // namespace hearth::llm
