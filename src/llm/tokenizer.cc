// SPDX-License-Identifier: Apache-2.0
#include "llm/tokenizer.h"

#include <utility>

#include "llm/byte_pair_file.h"
#include "llm/byte_pair_table.h"
#include "llm/byte_pair_tokenizer.h"
#include "llm/sentence_piece_model.h"
#include "llm/sentence_piece_table.h"
#include "llm/sentence_piece_tokenizer.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

template <typename T>
Result<T> whileReading(Result<T> result) {
  if (!result)
    return std::unexpected(std::move(result.error()).addContext("while reading the tokenizer"));
  return result;
}

Result<Tokenizer> fromOwnTable(Result<std::vector<uint8_t>> table) {
  if (!table) return std::unexpected(std::move(table.error()));
  const auto owner = std::make_shared<const std::vector<uint8_t>>(*std::move(table));
  return Tokenizer::fromTable(*owner, owner);
}

}  // namespace

Result<std::vector<uint8_t>> Tokenizer::tableOfJson(std::string_view json) {
  return whileReading(tableOfTokenizerJson(json));
}

Result<std::vector<uint8_t>> Tokenizer::tableOfSentencePiece(std::span<const uint8_t> message) {
  return whileReading([&]() -> Result<std::vector<uint8_t>> {
    HEARTH_ASSIGN(const SentencePieceModel model, SentencePieceModel::read(message));
    return SentencePieceTable::make(model);
  }());
}

Result<Tokenizer> Tokenizer::fromTable(std::span<const uint8_t> bytes,
                                       std::shared_ptr<const void> owner) {
  return whileReading(BytePairTable::isTable(bytes)
                          ? BytePairTokenizer::ofTable(bytes, std::move(owner))
                          : SentencePieceTokenizer::ofTable(bytes, std::move(owner)));
}

Result<Tokenizer> Tokenizer::fromJson(std::string_view json) {
  return fromOwnTable(tableOfJson(json));
}

Result<Tokenizer> Tokenizer::fromSentencePiece(std::span<const uint8_t> message) {
  return fromOwnTable(tableOfSentencePiece(message));
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, SpecialTokens special,
                                               bool isFirst) const {
  if (text.size() > kMaxTextBytes)
    return fail(ErrorCode::kBadData, "The text has {} bytes; at most {} are encoded.", text.size(),
                kMaxTextBytes);
  if (const size_t invalid = findInvalidUtf8(text); invalid != std::string_view::npos)
    return fail(ErrorCode::kBadData, "The text is no UTF-8 at byte {}.", invalid);
  return model_->encode(text, special, isFirst);
}

std::string Tokenizer::decode(std::span<const int32_t> tokens, bool hasSpecial,
                              bool isFirst) const {
  std::string bytes;
  for (const int32_t token : tokens) {
    if (!isSpecial(token)) {
      appendBytes(token, &isFirst, &bytes);
    } else if (hasSpecial) {
      bytes.append(text(token));
      isFirst = false;
    }
  }
  return replaceInvalidUtf8(bytes);
}

}  // namespace hearth::llm
